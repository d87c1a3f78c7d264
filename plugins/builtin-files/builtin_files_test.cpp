#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "builtin-files/files_fixture.hpp"
#include "builtin-files/glob.hpp"

namespace fs = std::filesystem;
using builtin_files::testing::Files;
using builtin_files::testing::Tree;
using tool_kit::testing::Answer;

namespace {

std::string lines(int first, int last) {
  std::string text;
  for (int i = first; i <= last; ++i) text += "line " + std::to_string(i) + "\n";
  return text;
}

std::string start_error(const std::string &config) {
  try {
    const Files files(config);
  } catch (const std::runtime_error &e) {
    return e.what();
  }
  return {};
}

}  // namespace

TEST_CASE("tools/list has the members that MCP requires") {
  const Tree tree;
  Files files(tree);
  const Answer list("{\"tools\":" + files.list() + "}");
  const auto &tools = list.json()["tools"];
  REQUIRE(tools.Size() == 5);
  for (const auto &tool : tools.GetArray()) {
    CHECK(std::string(tool["inputSchema"]["type"].GetString()) == "object");
    CHECK(tool["inputSchema"]["properties"].HasMember("workspace"));
    CHECK(tool["annotations"]["readOnlyHint"].IsTrue());
    CHECK(tool["annotations"]["destructiveHint"].IsFalse());
    CHECK(tool["description"].GetStringLength() > 20);
    CHECK(std::string(tool["outputSchema"]["type"].GetString()) == "object");
  }
  files.list(BH_LIST_PROMPTS);
  CHECK(files.status == BH_E_UNSUPPORTED);
  files.begin("file_write", "{}");
  CHECK(files.status == BH_E_NOT_FOUND);
}

TEST_CASE("file_read returns lines unchanged, page by page") {
  Tree tree;
  tree.file("a/b.txt", "one\r\n\xC3\xA9 two\n\nlast");
  tree.file("empty", "");
  tree.file("many", lines(1, 5000));
  Files files(tree);
  const Answer all = files.call("file_read", R"({"path":"a/b.txt"})");
  CHECK_FALSE(all.is_error());
  CHECK(all.text() == "one\r\n\xC3\xA9 two\n\nlast");
  CHECK(all.json()["content"].Size() == 1);
  CHECK(files.call("file_read", R"({"path":"./a/b.txt","offset":2,"limit":1})").text() ==
        "\xC3\xA9 two\n");
  CHECK(files.call("file_read", R"({"path":"empty"})").text().empty());

  std::string read;
  for (std::string offset = "1"; !offset.empty();) {
    const std::string arguments = R"({"path":"many","limit":999,"offset":)" + offset + "}";
    const Answer page = files.call("file_read", arguments);
    REQUIRE_FALSE(page.is_error());
    read += page.text();
    const std::string note = page.text(1);
    const std::size_t at = note.find("next offset ");
    offset = at == note.npos ? "" : note.substr(at + 12, note.find('.', at) - at - 12);
  }
  CHECK(read == lines(1, 5000));
  CHECK(files.call("file_read", R"({"path":"many"})").text() == lines(1, 2000));
  const Answer beyond = files.call("file_read", R"({"path":"many","offset":5001})");
  CHECK(beyond.text() == "Error: \"many\" has no line 5001");
}

TEST_CASE("file_read truncates at 1 MiB, at the end of a line or character") {
  Tree tree;
  std::string wide;
  for (int i = 0; i < 3000; ++i) wide += std::string(999, 'x') + "\n";
  tree.file("wide", wide);
  std::string one;
  while (one.size() < 3u << 20) one += "\xE2\x82\xAC";
  tree.file("one", one + "\nsecond\n");
  Files files(tree);
  const Answer page = files.call("file_read", R"({"path":"wide","limit":100000})");
  CHECK(page.text() == wide.substr(0, 1048 * 1000));
  CHECK(page.text(1) == "Lines 1 to 1048; more of the file remains: next offset 1049.");
  const Answer cut = files.call("file_read", R"({"path":"one"})");
  CHECK(cut.text() == one.substr(0, (1u << 20) / 3 * 3));
  CHECK(cut.text(1).find("next offset 2. The line is longer") != std::string::npos);
  CHECK(files.call("file_read", R"({"path":"one","offset":2})").text() == "second\n");
}

TEST_CASE("file_read reports that a file is not text, and returns it as base64 on request") {
  Tree tree;
  tree.file("x.bin", std::string("ab\0\xFF", 4));
  tree.file("latin1", "caf\xE9\n");
  tree.file("p.png", "\x89PNG");
  tree.file("odd name\xC3\xA9.dat", "abc");
  Files files(tree);
  CHECK(files.call("file_read", R"({"path":"x.bin"})").text().find("not a text file (4 bytes)") !=
        std::string::npos);
  CHECK(files.call("file_read", R"({"path":"latin1"})").is_error());
  const Answer blob = files.call("file_read", R"({"path":"x.bin","encoding":"base64"})");
  CHECK(std::string(blob.json()["content"][0]["resource"]["blob"].GetString()) == "YWIA/w==");
  const Answer image = files.call("file_read", R"({"path":"p.png","encoding":"base64"})");
  CHECK(std::string(image.json()["content"][0]["type"].GetString()) == "image");
  CHECK(std::string(image.json()["content"][0]["data"].GetString()) == "iVBORw==");
  const Answer odd =
      files.call("file_read", "{\"path\":\"odd name\xC3\xA9.dat\",\"encoding\":\"base64\"}");
  CHECK(std::string(odd.json()["content"][0]["resource"]["uri"].GetString()) ==
        "file://" + tree.root().string() + "/odd%20name%C3%A9.dat");
}

TEST_CASE("paths cannot leave the workspace") {
  Tree tree;
  tree.file("in.txt", "inside\n");
  tree.file("sub/x", "x\n");
  fs::create_symlink("in.txt", tree.root() / "good");
  fs::create_symlink("../in.txt", tree.root() / "sub/up_but_in");
  fs::create_symlink("/etc/passwd", tree.root() / "passwd");
  fs::create_symlink("../secret.txt", tree.root() / "secret");
  fs::create_symlink("..", tree.root() / "parent");
  fs::create_symlink("/proc/self/root/etc/passwd", tree.root() / "magic");
  fs::create_symlink("loop", tree.root() / "loop");
  Files files(tree);
  CHECK(files.call("file_read", R"({"path":"good"})").text() == "inside\n");
  CHECK(files.call("file_read", R"({"path":"sub/up_but_in"})").text() == "inside\n");
  const auto error = [&](const char *tool, const std::string &path) {
    const Answer answer = files.call(tool, R"({"path":")" + path + "\"}");
    CHECK(answer.is_error());
    return answer.text();
  };
  CHECK(error("file_read", "passwd") == "Error: \"passwd\" leads out of the workspace \"work\"");
  for (const char *path : {"secret", "parent/secret.txt", "magic"}) {
    INFO(path);
    CHECK(error("file_read", path).find("leads out of the workspace") != std::string::npos);
  }
  CHECK(error("file_read", "loop").find("symbolic link") != std::string::npos);
  for (const char *tool : {"file_read", "file_info", "dir_list"}) {
    INFO(tool);
    CHECK(error(tool, "/etc/passwd").find("is absolute") != std::string::npos);
    CHECK(error(tool, "../secret.txt").find("not allowed") != std::string::npos);
    CHECK(error(tool, "sub/../../secret.txt").find("not allowed") != std::string::npos);
    CHECK(error(tool, "parent/root/in.txt").find("leads out") != std::string::npos);
    CHECK(error(tool, "").find("path is empty") != std::string::npos);
    CHECK(error(tool, "none").find("there is no \"none\"") != std::string::npos);
    CHECK(error(tool, "a\\u0000b").find("NUL") != std::string::npos);
  }
  CHECK(error("dir_list", "parent").find("leads out") != std::string::npos);
  CHECK(error("file_search", "parent").find("glob") != std::string::npos);
  CHECK(files.call("file_search", R"({"path":"parent","glob":"*"})").is_error());
  CHECK(files.call("file_search", R"({"path":"..","glob":"*"})").is_error());
  const Answer info = files.call("file_info", R"({"path":"passwd"})");
  CHECK(std::string(info.structured()["type"].GetString()) == "symlink");
  CHECK(std::string(info.structured()["target"].GetString()) == "/etc/passwd");
  CHECK(files.call("file_search", R"({"content":"do not read"})").structured()["matches"].Empty());
}

TEST_CASE("file_read rejects folders and FIFOs") {
  Tree tree;
  fs::create_directory(tree.root() / "dir");
  REQUIRE(::mkfifo((tree.root() / "fifo").c_str(), 0600) == 0);
  Files files(tree);
  CHECK(files.call("file_read", R"({"path":"dir"})").text().find("list it with dir_list") !=
        std::string::npos);
  CHECK(files.call("file_read", R"({"path":"fifo"})").text().find("not a regular file") !=
        std::string::npos);
  CHECK(files.call("dir_list", R"({"path":"fifo"})").is_error());
  CHECK(files.call("file_search", R"({"content":"x"})").structured()["complete"].IsTrue());
}

TEST_CASE("dir_list is sorted and limited") {
  Tree tree;
  tree.file("b.txt", "12345");
  tree.file("a/inner", "");
  fs::create_symlink("b.txt", tree.root() / "link");
  Files files(tree);
  const Answer list = files.call("dir_list", "{}");
  const auto &entries = list.structured()["entries"];
  REQUIRE(entries.Size() == 3);
  CHECK(std::string(entries[0]["name"].GetString()) == "a");
  CHECK(std::string(entries[0]["type"].GetString()) == "directory");
  CHECK(std::string(entries[1]["name"].GetString()) == "b.txt");
  CHECK(entries[1]["size"].GetInt() == 5);
  CHECK(std::string(entries[2]["type"].GetString()) == "symlink");
  CHECK(list.structured()["more"].GetInt() == 0);
  CHECK(list.text().find("a/\nb.txt  5 bytes") == 0);
  CHECK(files.call("dir_list", R"({"path":"a"})").structured()["entries"].Size() == 1);
  for (int i = 0; i < 2003; ++i) tree.file("big/" + std::to_string(10000 + i), "");
  const Answer big = files.call("dir_list", R"({"path":"big"})");
  CHECK(big.structured()["entries"].Size() == 2000);
  CHECK(big.structured()["more"].GetInt() == 3);
  CHECK(big.text().find("3 further entries are not shown") != std::string::npos);
}

TEST_CASE("file_info reports type, size and mode") {
  Tree tree;
  tree.file("f", "123");
  fs::permissions(tree.root() / "f", fs::perms(0640));
  Files files(tree);
  const Answer info = files.call("file_info", R"({"path":"f"})");
  CHECK(std::string(info.structured()["type"].GetString()) == "file");
  CHECK(info.structured()["size"].GetInt() == 3);
  CHECK(std::string(info.structured()["mode"].GetString()) == "0640");
  CHECK(info.structured()["modified"].GetStringLength() == 20);
  CHECK(files.call("file_info", R"({"path":"."})").structured()["type"] == "directory");
}

TEST_CASE("file_search searches by name and by content") {
  Tree tree;
  tree.file("src/main.cpp", "int main() {\n  return Answer();\n}\n");
  tree.file("src/deep/a.hpp", "int answer();\nint answer2(); // answer\r\n");
  tree.file("notes.md", "the answer\n");
  tree.file(".git/config", "answer\n");
  tree.file("bin", std::string("answer\0", 7));
  tree.file("long.md", std::string(400, '-') + "answer");
  fs::create_directory_symlink("src", tree.root() / "link");
  Files files(tree);
  const auto found = [&](const char *arguments) {
    const Answer answer = files.call("file_search", arguments);
    INFO(answer.text());
    CHECK_FALSE(answer.is_error());
    std::string text;
    for (const auto &m : answer.structured()["matches"].GetArray()) {
      text += m["path"].GetString();
      if (m.HasMember("line")) text += ":" + std::to_string(m["line"].GetInt());
      text += " ";
    }
    return text;
  };
  CHECK(found(R"({"glob":"*.?pp"})") == "src/deep/a.hpp src/main.cpp ");
  CHECK(found(R"({"glob":"src/*.?pp"})") == "src/main.cpp ");
  CHECK(found(R"({"glob":"src/**/*.?pp"})") == "src/deep/a.hpp src/main.cpp ");
  CHECK(found(R"({"glob":"deep"})") == "src/deep/ ");
  CHECK(found(R"({"path":"src","glob":"*.cpp"})") == "src/main.cpp ");
  CHECK(found(R"({"content":"answer"})") ==
        "long.md:1 notes.md:1 src/deep/a.hpp:1 src/deep/a.hpp:2 ");
  CHECK(found(R"({"content":"ANSWER","ignore_case":true,"glob":"*.cpp"})") == "src/main.cpp:2 ");
  CHECK(found(R"({"content":"absent"})").empty());
  const Answer text = files.call("file_search", R"({"content":"answer","glob":"a.hpp"})");
  CHECK(text.text() ==
        "src/deep/a.hpp:1: int answer();\nsrc/deep/a.hpp:2: int answer2(); // answer\n");
  const Answer cut = files.call("file_search", R"({"content":"answer","max_matches":2})");
  CHECK(cut.structured()["matches"].Size() == 2);
  CHECK(cut.structured()["complete"].IsFalse());
  CHECK(cut.text().find("there are more matches") != std::string::npos);
  CHECK(files.call("file_search", "{}").text().find("specify \"glob\"") != std::string::npos);
  CHECK(files.call("file_search", R"({"content":"a\nb"})").is_error());
  const std::string longest(4096, 'a');
  tree.file("many.md", std::string(2u << 20, 'a') + "b\n");
  CHECK(found(("{\"content\":\"" + longest.substr(1) + "b\"}").c_str()) == "many.md:1 ");
  const Answer longer = files.call("file_search", "{\"content\":\"" + longest + "b\"}");
  CHECK(longer.is_error());
  CHECK(longer.text().find("4096") != std::string::npos);
}

TEST_CASE("file_search searches by regular expression") {
  Tree tree;
  tree.file("a.c", "int answer = 42;\r\nchar *Answer;\n  return answer;\n");
  tree.file("b.c", "none\n");
  tree.file("bytes", "caf\xE9 42\n");
  Files files(tree);
  const auto lines = [&](const std::string &pattern, const char *more = "") {
    const Answer answer =
        files.call("file_search", R"({"regex":true,"content":")" + pattern + "\"" + more + "}");
    INFO(answer.text());
    CHECK_FALSE(answer.is_error());
    std::string text;
    for (const auto &m : answer.structured()["matches"].GetArray()) {
      text += m["path"].GetString() + (":" + std::to_string(m["line"].GetInt())) + " ";
    }
    return text;
  };
  CHECK(lines("answer( =|;)") == "a.c:1 a.c:3 ");
  CHECK(lines("^.*answer;$", R"(,"ignore_case":true)") == "a.c:2 a.c:3 ");
  CHECK(lines("42;$") == "a.c:1 ");  // the line has no carriage return
  CHECK(lines(R"(\\d+)") == "a.c:1 bytes:1 ");
  CHECK(lines("answer.*return").empty());  // matches do not span lines
  CHECK(lines("[a-z]", R"(,"glob":"b.*")") == "b.c:1 ");
  const auto refused = [&](const std::string &pattern) {
    const Answer answer =
        files.call("file_search", R"({"regex":true,"content":")" + pattern + "\"}");
    CHECK(answer.is_error());
    return answer.text();
  };
  CHECK(refused("(a").find("invalid regular expression: missing )") != std::string::npos);
  CHECK(refused("(?=a)b").find("no lookaround") != std::string::npos);
  CHECK(refused("((a{1000}){1000}){1000}").find("invalid regular expression") != std::string::npos);
  CHECK(files.call("file_search", R"({"regex":true,"glob":"*"})").is_error());
}

// Without the cancellation, the search would exceed the test's time limit.
TEST_CASE("a cancelled search stops in the middle of a file") {
  Tree tree;
  tree.file("one line", std::string(4u << 20, 'b'));
  Files files(tree);
  const bh_call call =
      files.begin("file_search", R"({"regex":true,"content":"[a-q][^u-z]{500}x"})");
  REQUIRE(files.status == BH_PENDING);
  files.cancel(call);
  const Answer answer = files.wait(call);
  CHECK(answer.structured()["reason"] == "the call was cancelled");
}

TEST_CASE("the depth of a search is limited") {
  Tree tree;
  std::string path;
  for (int i = 0; i < 80; ++i) path += "d/";
  tree.file(path + "end", "");
  Files files(tree);
  const Answer deep = files.call("file_search", R"({"glob":"end"})");
  CHECK(deep.structured()["complete"].IsFalse());
  CHECK(deep.text().find("folders at level 64 were not entered") != std::string::npos);
}

TEST_CASE("invalid arguments produce an error result with the reason") {
  const Tree tree;
  Files files(tree);
  CHECK(files.call("file_read", "").text().find("path is empty") != std::string::npos);
  CHECK(files.call("file_read", R"({"path":7})").text().find("must be a string") !=
        std::string::npos);
  CHECK(files.call("file_read", R"({"path":"a","offset":0})").text().find("from 1 to") !=
        std::string::npos);
  CHECK(files.call("file_read", R"({"path":"a","workspace":"other"})")
            .text()
            .find("must be one of: work") != std::string::npos);
  CHECK(files.call("file_read", R"({"path":"a","lines":3})").text() ==
        "Error: unknown argument \"lines\"");
}

TEST_CASE("each workspace has its own files") {
  Tree one;
  Tree two;
  one.file("f", "1");
  two.file("f", "2");
  Files files(R"({"workspaces":[{"name":"one","path":")" + one.root().string() +
              R"("},{"name":"two","path":")" + two.root().string() + R"(","write":false}]})");
  CHECK(files.call("file_read", R"({"path":"f"})").text() == "1");
  CHECK(files.call("file_read", R"({"path":"f","workspace":"two"})").text() == "2");
  CHECK(files.list().find(R"("enum":["one","two"])") != std::string::npos);
}

TEST_CASE("an invalid configuration is rejected with an error message") {
  CHECK(start_error("{}").empty());  // the default is the current folder
  CHECK(start_error("[]").find("not a JSON object") != std::string::npos);
  CHECK(start_error(R"({"path":""})").find("path of a folder") != std::string::npos);
  CHECK(start_error(R"({"path":"/does/not/exist"})").find("/does/not/exist") != std::string::npos);
  CHECK(start_error(R"({"path":".","workspaces":[]})").find("either") != std::string::npos);
  CHECK(start_error(R"({"workspaces":[]})").find("1 to 32") != std::string::npos);
  CHECK(start_error(R"({"workspaces":[{"name":"a b","path":"."}]})").find("name of letters") !=
        std::string::npos);
  CHECK(
      start_error(R"({"workspaces":[{"name":"a","path":".","write":1}]})").find("true or false") !=
      std::string::npos);
  CHECK(start_error(R"({"path":".","write":true,"write_bytes":-1})").find("whole number") !=
        std::string::npos);
  CHECK(start_error(R"({"write":true,"workspaces":[{"name":"a","path":"."}]})")
            .find("in each workspace") != std::string::npos);
  CHECK(start_error(R"({"workspaces":[{"name":"a","path":"."},{"name":"a","path":"/"}]})")
            .find("two workspaces") != std::string::npos);
}

TEST_CASE("no call starts while the plugin drains") {
  const Tree tree;
  Files files(tree);
  files.drain();
  files.begin("dir_list", "{}");
  CHECK(files.status == BH_E_UNAVAILABLE);
}

TEST_CASE("glob patterns match paths") {
  using builtin_files::glob_matches;
  CHECK(glob_matches("*", "a"));
  CHECK(glob_matches("*.c", "x/y/a.c"));
  CHECK_FALSE(glob_matches("*.c", "a.cc"));
  CHECK(glob_matches("a?c",
                     "a\xC3\xA9"
                     "c"));
  CHECK_FALSE(glob_matches("a?c", "ac"));
  CHECK(glob_matches("**", "a/b/c"));
  CHECK(glob_matches("**/c", "c"));
  CHECK(glob_matches("a/**/c", "a/c"));
  CHECK(glob_matches("a/**/c", "a/x/y/c"));
  CHECK_FALSE(glob_matches("a/**/c", "b/x/c"));
  CHECK_FALSE(glob_matches("a/*", "a/b/c"));
  CHECK(glob_matches("a/**", "a/b/c"));
  CHECK_FALSE(glob_matches("", "a"));
  CHECK_FALSE(glob_matches(std::string(5000, '*'), "a"));
  // A naive matcher would take exponential time.
  std::string pattern;
  for (int i = 0; i < 500; ++i) pattern += "a*";
  CHECK_FALSE(glob_matches(pattern + "b", std::string(3000, 'a')));
  std::string stars;
  for (int i = 0; i < 200; ++i) stars += "**/a/";
  std::string path;
  for (int i = 0; i < 1000; ++i) path += "a/";
  CHECK_FALSE(glob_matches(stars + "b", path + "c"));
}

TEST_CASE("resolved paths must not contain symbolic links") {
  const std::string flag = GENERATE(R"(,"resolved":true)", R"(,"resolved":false)", "");
  const bool refuses = flag.ends_with("true");
  const Tree tree;
  fs::create_directories(tree.outside() / "store");
  fs::create_directory_symlink("root", tree.outside() / "link");
  fs::create_directory_symlink("store", tree.outside() / "kept");
  fs::create_directory_symlink(".", tree.outside() / "here");
  const auto starts = [&](const std::string &path, const std::string &store) {
    std::string config = R"({"path":")" + (tree.outside() / path).string() + "\"" + flag;
    if (!store.empty())
      config += R"(,"snapshots":{"path":")" + (tree.outside() / store).string() + "\"}";
    try {
      const Files files(config + "}");
      return true;
    } catch (const std::exception &) {
      return false;
    }
  };
  CHECK(starts("root", "store"));
  for (const char *path : {"link", "here/root", "link/."}) {
    INFO(path);
    CHECK(starts(path, "") == !refuses);
  }
  for (const char *store : {"kept", "here/store"}) {
    INFO(store);
    CHECK(starts("root", store) == !refuses);
  }
}
