// Tests the snapshot tools through the plugin interface.
#include <sys/stat.h>
#include <unistd.h>

#include <bulkhead/abi/ext/draft/event.h>
#include <catch2/catch.hpp>

#include "builtin-files/files_fixture.hpp"
#include "builtin-files/snapshots/snapshot_tools.hpp"
#include "builtin-files/snapshots/store.hpp"

namespace fs = std::filesystem;
using builtin_files::testing::Tree;
using tool_kit::testing::Answer;

namespace {

bool has(const std::string &text, std::string_view what) {
  return text.find(what) != std::string::npos;
}

// Runs the plugin with a writable workspace and a snapshot folder next to it. By default, automatic
// snapshots are disabled.
class Snapshots : public builtin_files::testing::Files {
 public:
  explicit Snapshots(Tree &tree, const std::string &more = ",\"interval_s\":0")
      : Files(config(tree, more)) {
    table_.size = sizeof table_;
    table_.event = [](void *ctx, bh_call, std::uint32_t kind, bh_str detail) {
      auto &self = *static_cast<Snapshots *>(bh::testing::FakeHost::self(ctx).user);
      self.events +=
          (kind == BH_RECORD_FS ? "fs " : "snapshot ") + std::string(bh::view(detail)) + "\n";
    };
    host.add_ext(BH_EXT_HOST_EVENT, &table_);
  }
  static std::string config(Tree &tree, const std::string &more) {
    fs::create_directories(folder(tree).parent_path());
    return tree.writable(",\"snapshots\":{\"path\":\"" + folder(tree).parent_path().string() +
                         "\"" + more + "}");
  }
  static fs::path folder(const Tree &tree) { return tree.outside() / "snapshots" / "work"; }

  // Calls a snapshot tool and parses its JSON output. Throws the error message if the tool fails.
  Answer json(const std::string &tool, const std::string &arguments = "{}") {
    Answer answer = call("snapshots_" + tool, arguments);
    if (answer.is_error()) throw std::runtime_error(answer.text());
    return Answer(answer.text());
  }
  std::string create(const std::string &name) {
    return json("create", "{\"name\":\"" + name + "\"}").json()["checkpoint"].GetString();
  }
  std::string error(const std::string &tool, const std::string &arguments) {
    const Answer answer = call("snapshots_" + tool, arguments);
    CHECK(answer.is_error());
    return answer.text();
  }
  // Returns all changes in one string: "created a, modified b, ...".
  std::string changes() {
    const Answer list = json("changes", R"({"format":"json"})");
    std::string out;
    for (const auto &c : list.json().GetArray()) {
      out +=
          std::string(out.empty() ? "" : ", ") + c["op"].GetString() + " " + c["path"].GetString();
    }
    return out;
  }
  std::string events;

 private:
  bh_host_event table_{};
};

std::size_t contents(const Tree &tree) {
  std::size_t n = 0;
  for (const auto &e : fs::recursive_directory_iterator(Snapshots::folder(tree) / "objects")) {
    n += e.is_regular_file();
  }
  return n;
}

unsigned mode_of(const Tree &tree, const char *path) {
  struct stat s{};
  REQUIRE(::lstat((tree.root() / path).c_str(), &s) == 0);
  return s.st_mode & 07777;
}

// Overwrites the first bytes of a file and restores its modification time. The size stays the same,
// so only the content and the ctime change.
void edit_unseen(const Tree &tree, const char *path, std::string_view bytes) {
  const auto time = fs::last_write_time(tree.root() / path);
  std::ofstream(tree.root() / path, std::ios::binary | std::ios::in) << bytes;
  fs::last_write_time(tree.root() / path, time);
}

}  // namespace

TEST_CASE("snapshot tools are offered only if a snapshot folder is configured") {
  Tree tree;
  CHECK_FALSE(has(builtin_files::testing::Files(tree).list(), "snapshots_"));
  Snapshots files(tree);
  const Answer list("{\"tools\":" + files.list() + "}");
  CHECK(list.json()["tools"].Size() == 16);
  const auto refused = [&](const std::string &path) {
    try {
      builtin_files::testing::Files at(tree.writable(",\"snapshots\":{\"path\":\"" + path + "\"}"));
    } catch (const std::runtime_error &e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(has(refused("/does/not/exist"), "does not exist"));
  fs::create_directory(tree.root() / "inside");
  CHECK(has(refused((tree.root() / "inside").string()), "must not contain each other"));
  CHECK(has(refused(tree.outside().string()), "must not contain each other"));
  CHECK(has(refused(""), "requires a \"path\""));
}

TEST_CASE("D10 twelve manual snapshots are taken without overwriting any") {
  Tree tree;
  tree.file("f", "1");
  Snapshots files(tree);
  for (int i = 10; i < 22; ++i) {
    tree.file("f", std::to_string(i));
    CHECK(files.create("n" + std::to_string(i)) == "cp-" + std::to_string(i));
  }
  CHECK(
      has(files.error("create", R"({"name":"more"})"), "all 12 manual snapshot slots are in use"));
  const Answer list = files.json("list", R"({"format":"json"})");
  CHECK(list.json()["snapshots"].Size() == 12);
  CHECK(list.json()["manual_available"].GetInt() == 0);
  CHECK(list.json()["snapshots"][0]["name"] == "n21");
  CHECK(list.json()["snapshots"][0]["changes_summary"]["edited"].GetInt() == 1);
  CHECK(list.json()["snapshots"][11]["changes_summary"]["created"].GetInt() == 1);
  CHECK(files.json("delete", R"({"checkpoint":"cp-15"})").json()["deleted"].IsTrue());
  CHECK(contents(tree) == 11);
  CHECK(files.create("again") == "cp-15");
  CHECK(has(files.error("delete", R"({"checkpoint":"cp-3"})"), "there is no snapshot cp-3"));
  CHECK(has(files.error("delete", R"({"checkpoint":"cp-010"})"), "not a snapshot name"));
  CHECK(has(files.error("create", R"({"name":"a b"})"), "letters"));
  CHECK(has(files.error("create", "{}"), "letters"));
  CHECK(
      has(files.events, R"(snapshot {"slot":10,"origin":"manual","name":"n10","files_count":1})"));
}

TEST_CASE("D11 changes are detected by content, and the text is plain JSON") {
  Tree tree;
  tree.file("same", "same");
  tree.file("edited", "12345");
  tree.file("gone", "x");
  tree.file("touched", "y");
  tree.file("dir/mode", "z");
  fs::create_symlink("same", tree.root() / "link");
  Snapshots files(tree);
  CHECK(has(files.call("snapshots_changes", "{}").text(), "There are no snapshots"));
  CHECK(files.changes().empty());
  files.create("one");
  CHECK(files.changes().empty());
  edit_unseen(tree, "edited", "54321");
  fs::remove(tree.root() / "gone");
  tree.file("new", "n");
  tree.file("touched", "y");
  fs::permissions(tree.root() / "dir/mode", fs::perms(0700));
  fs::remove(tree.root() / "link");
  fs::create_symlink("edited", tree.root() / "link");
  CHECK(files.changes() ==
        "modified dir/mode, modified edited, deleted gone, modified link, created new");
  const Answer list = files.json("changes", R"({"format":"json"})");
  CHECK(list.json()[3]["is_symlink"].IsTrue());
  CHECK(list.json()[1]["checkpoint"] == "cp-10");
  CHECK(list.json()[1]["checkpoint_name"] == "one");
  CHECK(list.json()[1]["size"].GetInt() == 5);
  CHECK(list.json()[1]["checkpoint_age"] == "just now");
  // Each change is reported for the newest snapshot in which the path differs.
  files.create("two");
  tree.file("new", "m");
  const Answer again = files.json("changes", R"({"format":"json"})");
  CHECK(again.json()[0]["path"] == "new");
  CHECK(again.json()[0]["op"] == "modified");
  CHECK(again.json()[0]["checkpoint"] == "cp-11");
  CHECK(again.json().Size() == 5);
  CHECK(again.json()[1]["checkpoint"] == "cp-10");
  const Answer page = files.call("snapshots_changes", R"({"max_length":20})");
  CHECK(has(page.text(), "start_index 20)"));
  CHECK(page.structured()["changes"].Size() == 5);
  // A page has at least one character, so that the caller makes progress.
  CHECK(builtin_files::page_of("aé€z", 0, 1) == "a\n(6 more bytes: continue with start_index 1)");
  CHECK(builtin_files::page_of("aé€z", 1, 1) == "é\n(4 more bytes: continue with start_index 3)");
  CHECK(builtin_files::page_of("aé€z", 3, 2) == "€\n(1 more bytes: continue with start_index 6)");
  CHECK(builtin_files::page_of("aé€z", 6, 1) == "z");
  CHECK(builtin_files::page_of("aé€z", 7, 1) == "");
}

TEST_CASE(
    "replacing a file with an entry of another type is reported as a deletion and a creation") {
  Tree tree;
  tree.file("a/x", "x");
  tree.file("b", "b");
  tree.file("a-b", "between");
  Snapshots files(tree);
  files.create("one");
  fs::remove_all(tree.root() / "a");
  tree.file("a", "file");
  fs::remove(tree.root() / "b");
  tree.file("b/y", "y");
  CHECK(files.changes() == "created a, deleted a/x, deleted b, created b/y");
  files.json("revert", R"({"path":"."})");
  CHECK(files.changes().empty());
  CHECK(tree.read("a/x") == "x");
  CHECK(tree.read("b") == "b");
}

TEST_CASE("D12 revert restores contents, modes and links, and deletes new files") {
  Tree tree;
  tree.file("modified", "old");
  tree.file("deleted", "back");
  tree.file("mode", "m");
  fs::permissions(tree.root() / "mode", fs::perms(0751));
  fs::create_symlink("modified", tree.root() / "link");
  Snapshots files(tree);
  files.create("one");
  tree.file("modified", "new content");
  fs::remove(tree.root() / "deleted");
  tree.file("later", "x");
  fs::permissions(tree.root() / "mode", fs::perms(0600));
  fs::remove(tree.root() / "link");
  tree.file("link", "no link");
  const auto action = [&](const std::string &path, const std::string &checkpoint = "") {
    const Answer done = files.json(
        "revert", "{\"path\":\"" + path + "\"" +
                      (checkpoint.empty() ? "" : ",\"checkpoint\":\"" + checkpoint + "\"") + "}");
    CHECK(done.json()["checkpoint"] == "cp-10");
    return std::string(done.json()["action"].GetString());
  };
  CHECK(action("modified") == "restored");
  CHECK(action("./deleted") == "restored");
  CHECK(action("mode") == "restored");
  CHECK(action("link") == "restored");
  CHECK(has(files.error("revert", R"({"path":"later"})"), "specify \"checkpoint\""));
  CHECK(action("later", "cp-10") == "deleted");
  CHECK(tree.read("modified") == "old");
  CHECK(tree.read("deleted") == "back");
  CHECK(mode_of(tree, "mode") == 0751);
  CHECK(fs::read_symlink(tree.root() / "link") == "modified");
  CHECK_FALSE(fs::exists(tree.root() / "later"));
  CHECK(has(files.error("revert", R"({"path":"modified"})"), "already current"));
  CHECK(has(files.error("revert", R"({"path":"never","checkpoint":"cp-10"})"),
            "exists neither in the workspace nor in"));
  CHECK(has(files.error("revert", R"({"path":"modified","checkpoint":"cp-11"})"),
            "no snapshot cp-11"));
  CHECK(has(files.error("revert", R"({"path":"../secret.txt"})"), "not allowed"));
  CHECK(has(files.error("revert", R"({"path":"/etc/passwd"})"), "is absolute"));
  CHECK(has(files.error("revert", "{}"), "specify \"path\""));
  CHECK(has(files.events, R"x("restored","path":"modified (from cp-10)","size":3})x"));
  CHECK(has(files.events, R"x("deleted","path":"later (from cp-10)","size":1})x"));
  CHECK(files.changes().empty());
}

TEST_CASE("reverting a folder restores all of its contents and nothing else") {
  Tree tree;
  tree.file("src/a", "a");
  tree.file("src/deep/b", "b");
  fs::create_directory(tree.root() / "src/empty");
  tree.file("src-other", "o");
  Snapshots files(tree);
  files.create("one");
  fs::remove_all(tree.root() / "src/deep");
  fs::remove(tree.root() / "src/empty");
  tree.file("src/a", "A");
  tree.file("src/new/c", "c");
  tree.file("src-other", "changed");
  const Answer done = files.json("revert", R"({"path":"src/"})");
  CHECK(done.json()["path"] == "src");
  CHECK(done.json()["restored"].GetInt() == 4);
  CHECK(done.json()["deleted"].GetInt() == 2);
  CHECK(tree.read("src/deep/b") == "b");
  CHECK(tree.read("src/a") == "a");
  CHECK(fs::is_directory(tree.root() / "src/empty"));
  CHECK_FALSE(fs::exists(tree.root() / "src/new"));
  CHECK(tree.read("src-other") == "changed");
  fs::remove_all(tree.root() / "src");
  files.json("revert", R"({"path":"src"})");
  CHECK(tree.read("src/deep/b") == "b");
  CHECK(has(files.error("revert", R"({"path":"src"})"), "already current"));
}

TEST_CASE("revert does not write through a link that replaced a folder") {
  Tree tree;
  tree.file("d/x", "kept");
  tree.file("e/x", "other");
  Snapshots files(tree);
  files.create("one");
  fs::remove_all(tree.root() / "d");
  fs::create_symlink("e", tree.root() / "d");
  CHECK(files.call("snapshots_revert", R"({"path":"d/x"})").is_error());
  CHECK(tree.read("e/x") == "other");
  files.json("revert", R"({"path":"."})");
  CHECK(tree.read("d/x") == "kept");
  CHECK(tree.read("e/x") == "other");
}

TEST_CASE("D13 the history of a file lists its versions") {
  Tree tree;
  Snapshots files(tree);
  tree.file("other", "o");
  files.create("none");
  tree.file("f", "1");
  files.create("first");
  files.create("same");
  tree.file("f", "22");
  files.create("second");
  fs::remove(tree.root() / "f");
  files.create("without");
  const auto history = [&](const char *path) {
    const Answer found = files.json("history", std::string("{\"path\":\"") + path + "\"}");
    std::string out;
    for (const auto &v : found.json()["versions"].GetArray()) {
      out += std::string(v["name"].GetString()) + ":" + v["status"].GetString() + " ";
    }
    return out;
  };
  CHECK(history("f") == "without:deleted second:modified same:unchanged first:new ");
  CHECK(files.json("history", R"({"path":"f"})").json()["current_size"].IsNull());
  CHECK(history("other").ends_with("none:new "));
  CHECK(files.json("history", R"({"path":"other"})").json()["current_size"].GetInt() == 1);
  CHECK(has(files.error("history", R"({"path":"nowhere"})"), "no snapshot contains"));
}

TEST_CASE("D14 compact keeps the newest content and uses one slot") {
  Tree tree;
  tree.file("a", "a1");
  tree.file("only-old", "o");
  tree.file("turns/into", "file");
  Snapshots files(tree);
  files.create("one");
  tree.file("a", "a2");
  fs::remove(tree.root() / "only-old");
  files.create("two");
  tree.file("a", "a3");
  fs::remove_all(tree.root() / "turns");
  tree.file("turns", "folder no more");
  files.create("three");
  const Answer made =
      files.json("compact", R"({"checkpoints":["cp-12","cp-10","cp-11"],"name":"all"})");
  CHECK(made.json()["merged_count"].GetInt() == 3);
  CHECK(made.json()["checkpoint"] == "cp-13");
  CHECK(made.json()["deleted_checkpoints"].Size() == 3);
  CHECK(made.json()["files_count"].GetInt() == 3);
  CHECK(files.json("list", R"({"format":"json"})").json()["snapshots"].Size() == 1);
  CHECK(contents(tree) == 3);
  tree.file("a", "a4");
  files.json("revert", R"({"path":"."})");
  CHECK(tree.read("a") == "a3");
  CHECK(tree.read("only-old") == "o");
  CHECK(tree.read("turns") == "folder no more");
  CHECK(has(files.error("compact", R"({"checkpoints":["cp-13"]})"), "at least two"));
  CHECK(has(files.error("compact", R"({"checkpoints":["cp-13","cp-13"]})"), "at least two"));
  CHECK(has(files.error("compact", R"({"checkpoints":["cp-13","cp-12"]})"), "no snapshot cp-12"));
  CHECK(has(files.error("compact", R"({"checkpoints":"cp-13"})"), "array of strings"));
}

TEST_CASE("compact requires no free slot if a source is manual") {
  Tree tree;
  Snapshots files(tree);
  for (int i = 0; i < 12; ++i) {
    tree.file("f" + std::to_string(i), "x" + std::to_string(i));
    files.create("n" + std::to_string(i));
  }
  const Answer made = files.json("compact", R"({"checkpoints":["cp-10","cp-11","cp-12"]})");
  CHECK(has(made.json()["name"].GetString(), "compacted_"));
  CHECK(files.json("list", R"({"format":"json"})").json()["manual_available"].GetInt() == 2);
  files.create("next");
  CHECK(contents(tree) == 12);
}

TEST_CASE("D15 automatic snapshots use a ring of slots, and an unchanged workspace gets none") {
  Tree tree;
  tree.file("f", "0");
  Snapshots files(tree, ",\"interval_s\":0,\"before_changes\":true");
  for (int i = 1; i <= 13; ++i) {
    files.call("file_write", R"({"path":"f","content":")" + std::to_string(i) + "\"}");
  }
  const Answer list = files.json("list", R"({"format":"json"})");
  REQUIRE(list.json()["snapshots"].Size() == 10);
  CHECK(list.json()["snapshots"][0]["origin"] == "auto");
  CHECK(list.json()["snapshots"][0]["checkpoint"] == "cp-2");
  CHECK(contents(tree) == 10);
  CHECK(has(files.error("delete", R"({"checkpoint":"cp-2"})"), "is an automatic snapshot"));
  // Each snapshot was taken before the change, so the newest one has the previous content. Contents
  // that were used only by overwritten snapshots have been removed.
  files.json("revert", R"({"path":"f","checkpoint":"cp-2"})");
  CHECK(tree.read("f") == "12");
  const auto newest = [&] {
    files.call("file_delete", R"({"path":"nothing"})");
    const Answer now = files.json("list", R"({"format":"json"})");
    return std::string(now.json()["snapshots"][0]["checkpoint"].GetString());
  };
  const std::string first = newest();
  CHECK(newest() == first);
}

TEST_CASE("automatic snapshots are taken at start and periodically") {
  Tree tree;
  tree.file("f", "0");
  Snapshots files(tree, ",\"interval_s\":1");
  const auto count = [&] {
    return files.json("list", R"({"format":"json"})").json()["snapshots"].Size();
  };
  REQUIRE(files.host.run_until([&] { return count() == 1; }, 10'000));
  tree.file("f", "1");
  REQUIRE(files.host.run_until([&] { return count() == 2; }, 10'000));
}

TEST_CASE("a full store removes old automatic snapshots first, then rejects new snapshots") {
  Tree tree;
  const auto fill = [&](char c) { tree.file("f", std::string(300'000, c)); };
  fill('a');
  Snapshots files(tree, R"(,"interval_s":0,"before_changes":true,"max_bytes":1048576)");
  for (char c = 'b'; c < 'j'; ++c) {
    const std::string content(300'000, c);
    CHECK_FALSE(
        files.call("file_write", R"({"path":"f","content":")" + content + "\"}").is_error());
    CHECK(contents(tree) <= 3);
  }
  files.create("one");
  fill('1');
  files.create("two");
  fill('2');
  files.create("three");
  fill('3');
  CHECK(has(files.error("create", R"({"name":"four"})"), "max_bytes"));
  CHECK(
      has(files.call("file_write", R"({"path":"f","content":""})").text(), "nothing was changed"));
  CHECK(tree.read("f") == std::string(300'000, '3'));
  files.json("delete", R"({"checkpoint":"cp-10"})");
  files.create("four");
  CHECK(contents(tree) == 3);
}

TEST_CASE(
    "files that are too large or unreadable are skipped and reported, and a revert keeps them") {
  Tree tree;
  tree.file("small", "s");
  tree.file("large", std::string(5000, 'l'));
  REQUIRE(::mkfifo((tree.root() / "fifo").c_str(), 0600) == 0);
  REQUIRE(::truncate((tree.root() / "large").c_str(), off_t{1} << 40) == 0);
  Snapshots files(tree, ",\"interval_s\":0,\"max_file_bytes\":4096");
  const Answer made = files.json("create", R"({"name":"one"})");
  CHECK(made.json()["skipped_count"].GetInt() == 2);
  CHECK(made.json()["files_count"].GetInt() == 2);
  tree.file("small", "S");
  files.json("revert", R"({"path":"."})");
  CHECK(tree.read("small") == "s");
  CHECK(fs::file_size(tree.root() / "large") == std::uintmax_t{1} << 40);
  CHECK(fs::exists(tree.root() / "fifo"));
  fs::remove(tree.root() / "large");
  CHECK(files.changes() == "deleted large");
  CHECK(has(files.error("revert", R"({"path":"large"})"), "does not contain the content"));
}

TEST_CASE("snapshots do not share content with live files, and damage is detected") {
  Tree tree;
  tree.file("f", "content");
  tree.file("copy", "content");
  Snapshots files(tree);
  files.create("one");
  CHECK(contents(tree) == 1);
  struct stat s{};
  REQUIRE(::stat((tree.root() / "f").c_str(), &s) == 0);
  CHECK(s.st_nlink == 1);
  for (const auto &e : fs::recursive_directory_iterator(Snapshots::folder(tree) / "objects")) {
    if (e.is_regular_file()) std::ofstream(e.path()) << "damaged";
  }
  tree.file("f", "changed");
  CHECK(has(files.error("revert", R"({"path":"f"})"), "damaged"));
  CHECK(tree.read("f") == "changed");
  std::ofstream(Snapshots::folder(tree) / "cp-10", std::ios::in | std::ios::ate) << "x";
  CHECK(has(files.error("revert", R"({"path":"f","checkpoint":"cp-10"})"), "damaged"));
}

TEST_CASE("the next change removes leftovers of a killed process") {
  Tree tree;
  tree.file("f", "content");
  {
    Snapshots files(tree);
    files.create("one");
  }
  const fs::path objects = Snapshots::folder(tree) / "objects";
  std::ofstream(objects / "new-7") << "half";
  fs::create_directories(objects / "ab");
  std::ofstream(objects / "ab" / std::string(62, 'c')) << "unused";
  Snapshots files(tree);
  Snapshots second(tree);
  files.create("two");
  CHECK(contents(tree) == 1);
  CHECK(has(second.error("create", R"({"name":"three"})"), "another process"));
  CHECK(second.changes().empty());
}

TEST_CASE("snapshot creation reports progress and can be cancelled") {
  Tree tree;
  for (int i = 0; i < 20; ++i) tree.file("f" + std::to_string(i), std::to_string(i));
  fs::create_directory(tree.outside() / "kept");
  std::vector<builtin_files::Workspace> workspaces(1);
  std::string problem;
  REQUIRE(builtin_files::Workspace::open("work", tree.root().string(), &workspaces[0], &problem));
  builtin_files::SnapshotStore store(workspaces[0], {.path = (tree.outside() / "kept").string()});
  REQUIRE(store.open(&problem));
  tool_kit::Arguments arguments("");
  std::atomic<bool> cancelled{false};
  std::vector<std::pair<double, double>> told;
  // Cancels the call at the first progress report about file contents, which is sent after the
  // twenty files have been listed.
  const auto tell = [&](double done, double total, std::string_view unit) {
    CHECK(unit == "files");
    CHECK((told.empty() || done >= told.back().first));
    told.emplace_back(done, total);
    cancelled = total != 0;
  };
  builtin_files::Progress progress{tell, 0, 0};
  const builtin_files::Call call{.workspaces = workspaces,
                                 .arguments = arguments,
                                 .cancelled = cancelled,
                                 .deadline_ns = 0,
                                 .progress = &progress};
  const auto stopped = store.create(call, "one");
  CHECK(told.back() == std::pair<double, double>(19, 39));
  CHECK(has(stopped.problem, "cancelled"));
  CHECK(store.heads().empty());
  cancelled = false;
  progress.next_ns = ~0ull;
  CHECK(store.create(call, "two").good());
  CHECK(store.heads().size() == 1);
}

TEST_CASE("a cancelled comparison or revert stops immediately") {
  Tree tree;
  for (int i = 0; i < 20; ++i) tree.file("f" + std::to_string(i), std::to_string(i));
  fs::create_directory(tree.outside() / "kept");
  std::vector<builtin_files::Workspace> workspaces(1);
  std::string problem;
  REQUIRE(builtin_files::Workspace::open("work", tree.root().string(), &workspaces[0], &problem));
  workspaces[0].allow_writing(1u << 20);
  std::vector<std::unique_ptr<builtin_files::SnapshotStore>> stores;
  const builtin_files::SnapshotConfig config{.path = (tree.outside() / "kept").string()};
  stores.push_back(std::make_unique<builtin_files::SnapshotStore>(workspaces[0], config));
  REQUIRE(stores[0]->open(&problem));
  std::atomic<bool> cancelled{false};
  double stop_at = 1e9;
  const auto tell = [&](double done, double, std::string_view) {
    if (done >= stop_at) cancelled = true;
  };
  const auto run = [&](auto tool, const char *json) {
    tool_kit::Arguments arguments(json);
    builtin_files::Progress progress{tell, 0, 0};
    cancelled = false;
    return Answer(tool({.workspaces = workspaces,
                        .arguments = arguments,
                        .cancelled = cancelled,
                        .deadline_ns = 0,
                        .progress = &progress,
                        .snapshots = &stores}));
  };
  REQUIRE_FALSE(run(builtin_files::snapshots_create, R"({"name":"one"})").is_error());
  for (int i = 0; i < 20; ++i) tree.file("f" + std::to_string(i), "changed");
  // The first twenty reports are sent while the files are being listed. Later reports are sent
  // while they are being compared or restored.
  stop_at = 25;
  const Answer changes = run(builtin_files::snapshots_changes, R"({"format":"json"})");
  CHECK(changes.is_error());
  CHECK(has(changes.text(), "cancelled"));
  const Answer reverted = run(builtin_files::snapshots_revert, R"({"path":"."})");
  CHECK(reverted.is_error());
  std::size_t restored = 0;
  for (int i = 0; i < 20; ++i) restored += tree.read("f" + std::to_string(i)) == std::to_string(i);
  CHECK(restored >= 1);
  CHECK(restored < 20);
}

TEST_CASE("a link in the snapshot folder leads no content out of it") {
  Tree tree;
  tree.file("a", "one");
  tree.file("b/c", "two");
  const fs::path away = tree.outside() / "away", objects = Snapshots::folder(tree) / "objects";
  fs::create_directories(away);
  fs::create_directories(objects);
  for (const char first : std::string_view("0123456789abcdef")) {
    for (const char second : std::string_view("0123456789abcdef")) {
      fs::create_directory_symlink(away, objects / std::string{first, second});
    }
  }
  Snapshots files(tree);
  files.call("snapshots_create", R"({"name":"x"})");
  CHECK(fs::is_empty(away));
}
