// Tests the tools in a malicious workspace that another process prepares or modifies. No tool may
// access files outside the workspace, block, or exceed its limits.
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <thread>

#include "builtin-files/files_fixture.hpp"

namespace fs = std::filesystem;
using builtin_files::testing::Files;
using builtin_files::testing::Tree;
using tool_kit::testing::Answer;

namespace {

bool has(const std::string &text, std::string_view what) {
  return text.find(what) != std::string::npos;
}

std::string with_snapshots(const Tree &tree, const std::string &more = "") {
  fs::create_directories(tree.outside() / "kept");
  return tree.writable(",\"snapshots\":{\"interval_s\":0,\"path\":\"" +
                       (tree.outside() / "kept").string() + "\"" + more + "}");
}

// Repeats an action on a thread until this object is destroyed.
class Repeat {
 public:
  template <class Function>
  explicit Repeat(Function function)
      : thread_([this, function] {
          while (!stop_) function();
        }) {}
  ~Repeat() {
    stop_ = true;
    thread_.join();
  }
  Repeat(const Repeat &) = delete;
  Repeat &operator=(const Repeat &) = delete;

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

void exchange(const fs::path &a, const fs::path &b) {
  ::syscall(SYS_renameat2, AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE);
}

}  // namespace

TEST_CASE("a folder that is repeatedly replaced by a link to an outside folder is not followed") {
  Tree tree;
  const fs::path outside = tree.outside() / "outside";
  fs::create_directories(outside / "sub");
  std::ofstream(outside / "f") << "secret";
  std::ofstream(outside / "sub/f") << "secret";
  tree.file("d/f", "inside");
  tree.file("d/sub/f", "inside");
  fs::create_directory_symlink(outside, tree.root() / "link");
  Files files(with_snapshots(tree));
  files.host.blocking_inline = true;
  REQUIRE_FALSE(files.call("snapshots_create", R"({"name":"one"})").is_error());
  const Repeat race([&] { exchange(tree.root() / "d", tree.root() / "link"); });
  for (int i = 0; i < 100; ++i) {
    for (const char *path : {"d/f", "d/sub/f", "link/f"}) {
      const std::string p = std::string("{\"path\":\"") + path + "\"";
      CHECK_FALSE(has(files.call("file_read", p + "}").text(), "secret"));
      files.call("file_write", p + R"(,"content":"inside"})");
      files.call("file_edit", p + R"(,"old_text":"e","new_text":"E"})");
      files.call("file_move",
                 R"({"to":"d/moved","overwrite":true,"from":")" + std::string(path) + "\"}");
      files.call("file_delete", R"({"path":"d/moved"})");
      files.call("snapshots_revert", p + "}");
    }
    CHECK_FALSE(has(files.call("file_search", R"({"content":"secret"})").text(), "f:1"));
    files.call("file_delete", R"({"path":"d/sub","recursive":true})");
    files.call("snapshots_revert", R"({"path":"d"})");
  }
  CHECK(tree.read("../outside/f") == "secret");
  CHECK(tree.read("../outside/sub/f") == "secret");
  CHECK(std::distance(fs::recursive_directory_iterator(outside),
                      fs::recursive_directory_iterator()) == 3);
}

TEST_CASE("FIFOs, devices and sockets are listed, but not opened") {
  Tree tree;
  REQUIRE(::mkfifo((tree.root() / "fifo").c_str(), 0600) == 0);
  std::vector<std::string> names = {"fifo"};
  // mknod() for devices requires root.
  if (::mknod((tree.root() / "zero").c_str(), S_IFCHR | 0666, makedev(1, 5)) == 0) {
    names.emplace_back("zero");
  }
  Files files(with_snapshots(tree));
  for (const std::string &name : names) {
    INFO(name);
    const std::string path = R"("path":")" + name + "\"";
    CHECK(files.call("file_info", "{" + path + "}").structured()["type"] == "other");
    for (const char *encoding : {"text", "base64"}) {
      CHECK(files.call("file_read", "{" + path + R"(,"encoding":")" + encoding + "\"}").is_error());
    }
    CHECK(files.call("file_write", "{" + path + R"(,"content":""})").is_error());
    CHECK(files.call("file_edit", "{" + path + R"(,"old_text":"a","new_text":"b"})").is_error());
    CHECK(files.call("snapshots_revert", "{" + path + "}").is_error());
  }
  CHECK_FALSE(files.call("file_search", R"({"content":"x"})").is_error());
  CHECK_FALSE(files.call("dir_tree", "{}").is_error());
  const Answer made = files.call("snapshots_create", R"({"name":"one"})");
  CHECK(made.structured()["skipped_count"].GetUint() == names.size());
}

TEST_CASE("names of 255 bytes and names that are not UTF-8 are supported") {
  Tree tree;
  const std::string longest(255, 'n');
  tree.file(longest, "long");
  tree.file("odd\xFF\xFEname", "odd");
  tree.file("quote\"new\nline", "q");
  Files files(with_snapshots(tree));
  const std::string path = "{\"path\":\"" + longest + "\"";
  CHECK(files.call("file_read", path + "}").text() == "long");
  CHECK_FALSE(files.call("file_write", path + R"(,"content":"longer"})").is_error());
  CHECK(tree.read(longest) == "longer");
  const Answer list = files.call("dir_list", "{}");
  REQUIRE(list.structured()["entries"].Size() == 3);
  CHECK(std::string(list.structured()["entries"][1]["name"].GetString()) ==
        "odd\xEF\xBF\xBD\xEF\xBF\xBDname");
  CHECK_FALSE(files.call("file_read", R"({"path":"quote\"new\nline"})").is_error());
  REQUIRE_FALSE(files.call("snapshots_create", R"({"name":"one"})").is_error());
  tree.file("odd\xFF\xFEname", "changed");
  fs::remove(tree.root() / longest);
  CHECK(files.call("snapshots_changes", "{}").structured()["changes"].Size() == 2);
  CHECK_FALSE(files.call("snapshots_revert", R"({"path":"."})").is_error());
  CHECK(tree.read("odd\xFF\xFEname") == "odd");
  CHECK(tree.read(longest) == "longer");
}

TEST_CASE("reading a sparse file of 1 TB takes little time and memory") {
  Tree tree;
  tree.file("huge", "");
  if (::truncate((tree.root() / "huge").c_str(), off_t{1} << 40) != 0) {
    WARN("SKIP hostile_test: this file system does not support files of 1 TB");
    return;
  }
  Files files(with_snapshots(tree));
  CHECK(has(files.call("file_read", R"({"path":"huge"})").text(), "not a text file"));
  CHECK(has(files.call("file_read", R"({"path":"huge","encoding":"base64"})").text(), "1 MiB"));
  CHECK(has(files.call("file_edit", R"({"path":"huge","old_text":"a","new_text":"b"})").text(),
            "larger than 16 MiB"));
  CHECK(has(files.call("file_search", R"({"content":"a"})").text(), "larger than 4 MiB"));
  CHECK(
      files.call("snapshots_create", R"({"name":"one"})").structured()["skipped_count"].GetInt() ==
      1);
  // A file without line breaks has only one line.
  std::ofstream(tree.root() / "lines") << std::string(1000, 'a');
  CHECK(has(files.call("file_read", R"({"path":"lines","offset":5})").text(), "has no line 5"));
}

TEST_CASE("a read returns one version of a file that is replaced or truncated concurrently") {
  Tree tree;
  const std::string a(700'000, 'a');
  const std::string b(700'000, 'b');
  tree.file("f", a);
  tree.file("other", b);
  tree.file("cut", a);
  Files files(with_snapshots(tree));
  files.host.blocking_inline = true;
  const Repeat race([&] {
    exchange(tree.root() / "f", tree.root() / "other");
    if (::truncate((tree.root() / "cut").c_str(), 10) != 0) return;
    tree.file("cut", a);
  });
  for (int i = 0; i < 100; ++i) {
    const std::string text = files.call("file_read", R"({"path":"f"})").text();
    CHECK((text == a || text == b));
    const std::string cut = files.call("file_read", R"({"path":"cut"})").text();
    CHECK((cut.empty() || cut.starts_with("Error: ") ||
           (cut.size() <= a.size() && cut.find_first_not_of('a') == cut.npos)));
    files.call("file_edit", R"({"path":"cut","old_text":"b","new_text":"c"})");
    const std::string name = "n" + std::to_string(i);
    const Answer made = files.call("snapshots_create", "{\"name\":\"" + name + "\"}");
    REQUIRE_FALSE(made.is_error());
    files.call(
        "snapshots_delete",
        R"({"checkpoint":")" + std::string(made.structured()["checkpoint"].GetString()) + "\"}");
  }
}

TEST_CASE("a write to a full disk changes nothing") {
  Tree tree;
  const fs::path disk = tree.root();
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=1m") != 0) {
    WARN("SKIP hostile_test: cannot mount a file system (" << errno << ")");
    return;
  }
  {
    tree.file("f", "content");
    Files files(with_snapshots(tree));
    REQUIRE_FALSE(files.call("snapshots_create", R"({"name":"one"})").is_error());
    const std::string big(2'000'000, 'x');
    const Answer full = files.call("file_write", R"({"path":"f","content":")" + big + "\"}");
    CHECK(has(full.text(), "the disk is full; \"f\" is unchanged"));
    CHECK(tree.read("f") == "content");
    tree.file("filler", std::string(1'000'000, 'x'));
    std::ofstream(disk / "f") << "changed";
    tree.file("filler2", std::string(200'000, 'x'));
    const Answer edit = files.call("file_edit", R"({"path":"f","old_text":"c","new_text":")" +
                                                    std::string(300'000, 'y') + "\"}");
    CHECK(edit.is_error());
    CHECK(std::distance(fs::directory_iterator(disk), fs::directory_iterator()) == 3);
  }
  ::umount2(disk.c_str(), MNT_DETACH);
}

TEST_CASE("a full snapshot disk leaves no partial snapshot") {
  Tree tree;
  fs::create_directories(tree.outside() / "kept");
  const fs::path disk = tree.outside() / "kept";
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=1m") != 0) {
    WARN("SKIP hostile_test: cannot mount a file system (" << errno << ")");
    return;
  }
  {
    Files files(with_snapshots(tree));
    tree.file("f", "first");
    REQUIRE_FALSE(files.call("snapshots_create", R"({"name":"one"})").is_error());
    tree.file("f", std::string(2'000'000, 'x'));
    CHECK(has(files.call("snapshots_create", R"({"name":"two"})").text(), "is full"));
    const Answer list = files.call("snapshots_list", "{}");
    CHECK(list.structured()["snapshots"].Size() == 1);
    tree.file("f", "second");
    CHECK_FALSE(files.call("snapshots_create", R"({"name":"two"})").is_error());
    CHECK_FALSE(files.call("snapshots_revert", R"({"path":"f","checkpoint":"cp-10"})").is_error());
    CHECK(tree.read("f") == "first");
  }
  ::umount2(disk.c_str(), MNT_DETACH);
}
