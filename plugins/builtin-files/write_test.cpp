// Tests the tools that change files.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bulkhead/abi/ext/draft/event.h>
#include <catch2/catch.hpp>

#include "builtin-files/encoding.hpp"
#include "builtin-files/files_fixture.hpp"
#include "builtin-files/workspace.hpp"

namespace fs = std::filesystem;
using builtin_files::testing::Files;
using builtin_files::testing::Tree;
using tool_kit::testing::Answer;

namespace {

constexpr const char *writers[] = {"file_write", "file_edit", "file_move", "file_delete"};

bool has(const std::string &text, std::string_view what) {
  return text.find(what) != std::string::npos;
}

std::string error_of(Files &files, const char *tool, const std::string &arguments) {
  const Answer answer = files.call(tool, arguments);
  CHECK(answer.is_error());
  return answer.text();
}

// Counts the entries of a folder, including temporary files.
std::size_t entries(const Tree &tree, const char *path = ".") {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(tree.root() / path), fs::directory_iterator()));
}

unsigned mode_of(const Tree &tree, const char *path) {
  struct stat s{};
  REQUIRE(::lstat((tree.root() / path).c_str(), &s) == 0);
  return s.st_mode & 07777;
}

// Starts the plugin and collects the events that it records.
class Recorded : public Files {
 public:
  explicit Recorded(const std::string &config) : Files(config) {
    table_.size = sizeof table_;
    table_.event = [](void *ctx, bh_call, std::uint32_t kind, bh_str detail) {
      CHECK(kind == BH_RECORD_FS);
      static_cast<Recorded *>(bh::testing::FakeHost::self(ctx).user)->events +=
          std::string(bh::view(detail)) + "\n";
    };
    host.add_ext(BH_EXT_HOST_EVENT, &table_);
  }
  std::string events;

 private:
  bh_host_event table_{};
};

}  // namespace

TEST_CASE("tools that change files are offered only for writable workspaces") {
  const Tree one;
  const Tree two;
  Files reader(one);
  for (const char *tool : writers) {
    CHECK_FALSE(has(reader.list(), tool));
    reader.begin(tool, "{}");
    CHECK(reader.status == BH_E_NOT_FOUND);
  }
  Files files(R"({"workspaces":[{"name":"kept","path":")" + one.root().string() +
              R"("},{"name":"open","path":")" + two.root().string() + R"(","write":true}]})");
  const Answer list("{\"tools\":" + files.list() + "}");
  REQUIRE(list.json()["tools"].Size() == 9);
  for (const auto &tool : list.json()["tools"].GetArray()) {
    const bool reads = tool["annotations"]["readOnlyHint"].IsTrue();
    INFO(tool["name"].GetString());
    CHECK(tool["annotations"]["destructiveHint"].IsTrue() != reads);
    CHECK(tool["inputSchema"]["properties"]["workspace"]["enum"].Size() == (reads ? 2 : 1));
  }
  CHECK(has(error_of(files, "file_write", R"({"path":"f","content":"","workspace":"kept"})"),
            "must be one of: open"));
  CHECK_FALSE(files.call("file_write", R"({"path":"f","content":"x"})").is_error());
  CHECK(two.read("f") == "x");
  CHECK(entries(one) == 0);
}

TEST_CASE("file_write creates and replaces files, but replaces none if create_only is set") {
  Tree tree;
  Recorded files(tree.writable());
  const Answer made = files.call("file_write", R"({"path":"a/b/c.txt","content":"one\n"})");
  CHECK(made.text() == "Created a/b/c.txt (4 bytes).\n");
  CHECK(made.structured()["created"].IsTrue());
  CHECK(tree.read("a/b/c.txt") == "one\n");
  CHECK(mode_of(tree, "a/b/c.txt") == 0644);
  fs::permissions(tree.root() / "a/b/c.txt", fs::perms(0750));
  CHECK(files.call("file_write", R"({"path":"a/b/c.txt","content":""})").text() ==
        "Replaced a/b/c.txt (0 bytes).\n");
  CHECK(tree.read("a/b/c.txt").empty());
  CHECK(mode_of(tree, "a/b/c.txt") == 0750);
  CHECK(
      has(error_of(files, "file_write", R"({"path":"a/b/c.txt","content":"x","create_only":true})"),
          "already exists"));
  CHECK(has(error_of(files, "file_write", R"({"path":"n/x","content":"x","parents":false})"),
            "there is no \"n/\""));
  CHECK(has(error_of(files, "file_write", R"({"path":"x"})"), "specify \"content\""));
  CHECK_FALSE(files.call("file_write", R"({"path":"bin","content":"AAEC/w==","encoding":"base64"})")
                  .is_error());
  CHECK(tree.read("bin") == std::string("\0\1\2\xFF", 4));
  CHECK(has(error_of(files, "file_write", R"({"path":"bin","content":"A","encoding":"base64"})"),
            "not base64"));
  CHECK(entries(tree) == 2);
  CHECK(entries(tree, "a/b") == 1);
  CHECK(files.events == R"({"action":"created","path":"a/b/c.txt","size":4})"
                        "\n"
                        R"({"action":"modified","path":"a/b/c.txt","size":0})"
                        "\n"
                        R"({"action":"created","path":"bin","size":4})"
                        "\n");
}

TEST_CASE("special files and files outside the workspace are not written") {
  Tree tree;
  tree.file("in.txt", "inside");
  fs::create_symlink("../secret.txt", tree.root() / "secret");
  fs::create_symlink("..", tree.root() / "parent");
  fs::create_symlink("in.txt", tree.root() / "link");
  REQUIRE(::mkfifo((tree.root() / "fifo").c_str(), 0600) == 0);
  Files files(tree.writable());
  const auto write = [&](const std::string &path) {
    return error_of(files, "file_write", R"({"content":"x","path":")" + path + "\"}");
  };
  CHECK(has(write("parent/secret.txt"), "leads out"));
  CHECK(has(write("../secret.txt"), "not allowed"));
  CHECK(has(write("/tmp/x"), "is absolute"));
  CHECK(has(write("secret"), "symbolic link"));
  CHECK(has(write("link"), "symbolic link"));
  CHECK(has(write("fifo"), "not a regular file"));
  CHECK(has(write("."), "is the workspace itself"));
  CHECK(has(write(""), "path is empty"));
  CHECK(has(write(std::string(256, 'n')), "255 bytes"));
  CHECK(has(write(builtin_files::temporary_name("x")), "reserved for temporary files"));
  for (const char *path : {"parent/secret.txt", "../secret.txt"}) {
    const std::string name = path;
    CHECK(files.call("file_delete", R"({"path":")" + name + "\"}").is_error());
    CHECK(files.call("file_move", R"({"to":"stolen","from":")" + name + "\"}").is_error());
    CHECK(files.call("file_move", R"({"from":"in.txt","to":")" + name + "\"}").is_error());
    CHECK(files.call("file_edit", R"({"old_text":"do","new_text":"x","path":")" + name + "\"}")
              .is_error());
  }
  CHECK(has(error_of(files, "file_edit", R"({"path":"link","old_text":"in","new_text":""})"),
            "symbolic link"));
  CHECK(tree.read("../secret.txt") == "do not read\n");
  CHECK(tree.read("in.txt") == "inside");
  CHECK(entries(tree) == 5);
  // Moving or deleting a link does not affect its target.
  CHECK_FALSE(files.call("file_delete", R"({"path":"secret"})").is_error());
  CHECK_FALSE(files.call("file_delete", R"({"path":"parent","recursive":true})").is_error());
  CHECK(tree.read("../secret.txt") == "do not read\n");
}

TEST_CASE("the temporary file of a killed writer is removed, that of a live writer is kept") {
  Tree tree;
  const std::string name = builtin_files::temporary_name("f");
  tree.file(name, "half");
  tree.file("other", "kept");
  Files files(tree.writable());
  CHECK_FALSE(has(files.call("dir_list", "{}").text(), "bulkhead"));
  CHECK_FALSE(files.call("file_write", R"({"path":"f","content":"whole"})").is_error());
  CHECK(tree.read("f") == "whole");
  CHECK(entries(tree) == 2);
  // If the leftover temporary file is a hard link to another file, that file stays unchanged.
  fs::create_hard_link(tree.root() / "other", tree.root() / name);
  CHECK_FALSE(files.call("file_write", R"({"path":"f","content":"again"})").is_error());
  CHECK(tree.read("other") == "kept");
  const builtin_files::Fd busy(
      ::open((tree.root() / name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  REQUIRE(::flock(busy.get(), LOCK_EX) == 0);
  CHECK(has(error_of(files, "file_write", R"({"path":"f","content":"third"})"), "another call"));
  CHECK(tree.read("f") == "again");
}

TEST_CASE("writing is limited by write_bytes") {
  Tree tree;
  tree.file("f", "aaaa");
  Files files(tree.writable(",\"write_bytes\":10"));
  CHECK_FALSE(files.call("file_write", R"({"path":"a","content":"123456"})").is_error());
  CHECK(has(error_of(files, "file_write", R"({"path":"b","content":"12345"})"), "write_bytes"));
  CHECK_FALSE(
      files.call("file_edit", R"({"path":"f","old_text":"aaaa","new_text":"bbbb"})").is_error());
  CHECK(has(error_of(files, "file_edit", R"({"path":"f","old_text":"bbbb","new_text":"c"})"),
            "write_bytes"));
  CHECK(tree.read("f") == "bbbb");
  CHECK(entries(tree) == 2);
}

TEST_CASE("file_edit replaces exactly one occurrence of the given text") {
  Tree tree;
  tree.file("f.c", "int a;\nint b;\nint a;\n");
  fs::permissions(tree.root() / "f.c", fs::perms(0600));
  Recorded files(tree.writable());
  const Answer dry = files.call(
      "file_edit", R"({"path":"f.c","old_text":"int b;","new_text":"long b;","dry_run":true})");
  const std::string diff =
      "--- f.c\n+++ f.c\n@@ -1,3 +1,3 @@\n int a;\n-int b;\n+long b;\n int a;\n";
  CHECK(dry.text() == "Nothing was written; this would change:\n" + diff);
  CHECK(dry.structured()["diff"].GetString() == diff);
  CHECK(tree.read("f.c") == "int a;\nint b;\nint a;\n");
  CHECK(files.events.empty());
  CHECK(has(error_of(files, "file_edit", R"({"path":"f.c","old_text":"int a;","new_text":""})"),
            "occurs 2 times"));
  CHECK(has(error_of(files, "file_edit", R"({"path":"f.c","old_text":"int  b","new_text":""})"),
            "must match exactly"));
  const Answer all =
      files.call("file_edit", R"({"path":"f.c","old_text":"int a;\n","new_text":"x","all":true})");
  CHECK(all.structured()["replacements"].GetInt() == 2);
  CHECK(tree.read("f.c") == "xint b;\nx");
  CHECK(mode_of(tree, "f.c") == 0600);
  CHECK(entries(tree) == 1);
  CHECK(files.events == "{\"action\":\"modified\",\"path\":\"f.c\",\"size\":9}\n");
  CHECK(has(error_of(files, "file_edit", R"({"path":"g","old_text":"a","new_text":""})"),
            "create it with file_write"));
  CHECK(has(error_of(files, "file_edit", R"({"path":"f.c","old_text":"b","new_text":"b"})"),
            "identical"));
  CHECK(has(error_of(files, "file_edit", R"({"path":"f.c","old_text":"","new_text":"b"})"),
            "old_text"));
  CHECK(has(error_of(files, "file_edit", R"({"path":".","old_text":"a","new_text":"b"})"),
            "is the workspace itself"));
}

TEST_CASE("file_edit rejects a result that is too large to edit again") {
  Tree tree;
  tree.file("f", std::string(100'000, 'a'));
  tree.file("more", std::string(100'001, 'a'));
  Files files(tree.writable());
  const std::string edit =
      R"({"old_text":"a","all":true,"new_text":")" + std::string(1000, 'b') + "\",\"path\":";
  CHECK(has(error_of(files, "file_edit", edit + "\"f\"}"), "larger than 16 MiB"));
  CHECK(has(error_of(files, "file_edit", edit + "\"more\"}"), "more than 100,000 times"));
}

TEST_CASE("file_move keeps an existing target unless overwrite is set") {
  Tree tree;
  tree.file("a", "A");
  tree.file("b", "B");
  tree.file("d/x", "X");
  Recorded files(tree.writable());
  CHECK(has(error_of(files, "file_move", R"({"from":"a","to":"b"})"), "set overwrite"));
  CHECK(has(error_of(files, "file_move", R"({"from":"none","to":"c"})"), "there is no \"none\""));
  CHECK(has(error_of(files, "file_move", R"({"from":"d","to":"d/e"})"), "into itself"));
  CHECK(has(error_of(files, "file_move", R"({"from":"a","to":"d","overwrite":true})"), "folder"));
  CHECK(files.events.empty());
  CHECK(files.call("file_move", R"({"from":"a","to":"new/a"})").text() == "Moved a to new/a.\n");
  CHECK_FALSE(files.call("file_move", R"({"from":"new/a","to":"b","overwrite":true})").is_error());
  CHECK_FALSE(files.call("file_move", R"({"from":"d","to":"e"})").is_error());
  CHECK(tree.read("b") == "A");
  CHECK(tree.read("e/x") == "X");
  CHECK_FALSE(fs::exists(tree.root() / "a"));
  CHECK(has(files.events, R"({"action":"created","path":"b","size":1})"));
}

TEST_CASE("file_delete deletes files, links and empty folders, and trees only if recursive") {
  Tree tree;
  tree.file("f", "123");
  tree.file("d/e/g", "1");
  tree.file("d/h", "1");
  fs::create_symlink("../..", tree.root() / "d/out");
  fs::create_directory(tree.root() / "empty");
  Recorded files(tree.writable());
  CHECK(files.call("file_delete", R"({"path":"f"})").text() == "Deleted f.\n");
  CHECK_FALSE(files.call("file_delete", R"({"path":"empty/"})").is_error());
  CHECK(has(error_of(files, "file_delete", R"({"path":"d"})"), "set recursive"));
  CHECK(has(error_of(files, "file_delete", R"({"path":"."})"), "is the workspace itself"));
  CHECK(has(error_of(files, "file_delete", R"({"path":"none"})"), "there is no"));
  CHECK(has(error_of(files, "file_delete", R"({"path":"none","recursive":true})"), "there is no"));
  const Answer all = files.call("file_delete", R"({"path":"d","recursive":true})");
  CHECK(all.structured()["deleted"].GetInt() == 5);
  CHECK(entries(tree) == 0);
  CHECK(tree.read("../secret.txt") == "do not read\n");
  CHECK(has(files.events, R"({"action":"deleted","path":"f","size":3})"));
  std::string path;
  for (int i = 0; i < 80; ++i) path += "d/";
  tree.file(path + "end", "");
  CHECK(has(error_of(files, "file_delete", R"({"path":"d","recursive":true})"), "64 levels"));
}

TEST_CASE("base64 is encoded and decoded") {
  using builtin_files::base64;
  using builtin_files::from_base64;
  std::string bytes;
  std::string back;
  for (int i = 0; i < 300; ++i) {
    CHECK(from_base64(base64(bytes), &back));
    CHECK(back == bytes);
    bytes += static_cast<char>(i * 7);
  }
  CHECK(from_base64("YW\nJj\r\n", &back));
  CHECK(back == "abc");
  for (const char *wrong : {"A", "AA", "AA=", "AA==A", "AAA==", "=", "A===", "AA-_",
                            "AAAA=", "\u00e9\u00e9", "AAA\xff"}) {
    INFO(wrong);
    CHECK_FALSE(from_base64(wrong, &back));
  }
}
