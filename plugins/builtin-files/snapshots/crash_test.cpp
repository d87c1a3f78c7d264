// Tests crash safety: kills a process with SIGKILL at random times while it writes files and takes,
// reverts and compacts snapshots. Afterwards, each file must have either its old or its new
// content.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <random>
#include <set>

#include "builtin-files/files_fixture.hpp"

namespace fs = std::filesystem;
using builtin_files::testing::Files;
using builtin_files::testing::Tree;
using tool_kit::testing::Answer;

namespace {

constexpr int rounds = 200;
constexpr int many_files = 4;
constexpr int calls_of_round = 4 * many_files + 3 + 1 + 3;
constexpr std::size_t file_bytes = 40'000;

std::string config(const Tree &tree) {
  return tree.writable(",\"snapshots\":{\"interval_s\":0,\"path\":\"" +
                       (tree.outside() / "kept").string() + "\"}");
}

std::string member(const char *name, const std::string &value) {
  return std::string("{\"") + name + "\":\"" + value + "\"}";
}

// Changes files and snapshots in a loop until the process is killed. Writes one byte to the
// descriptor `begun` before each call. Every call must succeed.
[[noreturn]] void work(const Tree &tree, int round, int begun) {
  Files files(config(tree));
  files.host.blocking_inline = true;
  const auto call = [&](const char *tool, const std::string &arguments) {
    if (::write(begun, "", 1) != 1) ::_exit(1);
    const Answer answer = files.call(tool, arguments);
    if (answer.is_error()) {
      ::fprintf(stderr, "%s: %s\n", tool, answer.text().c_str());
      ::_exit(1);
    }
    const auto &structured = answer.structured();
    return std::string(structured.HasMember("checkpoint") ? structured["checkpoint"].GetString()
                                                          : "");
  };
  const auto write_all = [&](char c) {
    for (int i = 0; i < many_files; ++i) {
      call("file_write", R"({"path":"d/)" + std::to_string(i) + R"(","content":")" +
                             std::string(file_bytes, c) + "\"}");
    }
  };
  for (int k = 0;; ++k) {
    const std::string tag = std::to_string(round) + "-" + std::to_string(k);
    std::string sources;
    for (const char *part : {"a", "b", "c"}) {
      write_all(static_cast<char>('a' + (round + k + part[0]) % 26));
      const std::string made = call("snapshots_create", member("name", "s" + tag + part));
      sources += (sources.empty() ? "\"" : ",\"") + made + "\"";
    }
    call("file_edit", R"({"path":"d/0","old_text":")" + tree.read("d/0") + R"(","new_text":")" +
                          std::string(file_bytes, '-') + "\"}");
    write_all('+');
    call("snapshots_revert", R"({"path":"d"})");
    const std::string joined =
        call("snapshots_compact", R"({"name":"j)" + tag + R"(","checkpoints":[)" + sources + "]}");
    call("snapshots_delete", member("checkpoint", joined));
  }
}

// Specifies when to kill the process: the number of the call in work(), and the delay after the
// start of that call. Half of the kills target one of the last four calls of a round (a write,
// revert, compact and delete).
struct Strike {
  int call;
  long microseconds;
};
Strike random_strike(std::mt19937 *random) {
  const auto pick = [&](int first, int last) {
    return std::uniform_int_distribution<int>(first, last)(*random);
  };
  const int call =
      pick(0, 1) == 0 ? pick(1, calls_of_round) : pick(calls_of_round - 3, calls_of_round);
  return {call, pick(0, 3000)};
}

void kill_at(pid_t child, int begun, const Strike &strike) {
  char byte = 0;
  for (int i = 0; i < strike.call; ++i) REQUIRE(::read(begun, &byte, 1) == 1);
  const timespec pause{0, strike.microseconds * 1000};
  ::nanosleep(&pause, nullptr);
  ::kill(child, SIGKILL);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));  // killed, not exited
}

bool is_whole(const std::string &content) {
  return content.size() == file_bytes && content.find_first_not_of(content[0]) == content.npos;
}

// Each file must be complete. The only other files permitted are the plugin's temporary files,
// which the tools do not list.
void check_files(const Tree &tree) {
  std::set<std::string> left;
  for (const auto &entry : fs::recursive_directory_iterator(tree.root())) {
    if (!entry.is_regular_file()) continue;
    const std::string name = entry.path().filename();
    if (name.starts_with(".bulkhead-")) {
      left.insert(name);
    } else {
      INFO(name);
      CHECK(is_whole(tree.read("d/" + name)));
    }
  }
  CHECK(left.size() <= many_files + 1);
}

// A compacted snapshot must not be listed together with its sources, and each snapshot must restore
// complete files.
void check_snapshots(const Tree &tree) {
  Files files(config(tree));
  files.host.blocking_inline = true;
  const Answer list = files.call("snapshots_list", "{}");
  REQUIRE_FALSE(list.is_error());
  std::set<std::string> joined;
  std::set<std::string> sources;
  for (const auto &s : list.structured()["snapshots"].GetArray()) {
    const std::string name = s["name"].GetString();
    const std::string tag = name.substr(1);
    (name[0] == 'j' ? joined : sources)
        .insert(name[0] == 'j' ? tag : tag.substr(0, tag.size() - 1));
    const Answer done =
        files.call("snapshots_revert", R"({"path":".","checkpoint":")" +
                                           std::string(s["checkpoint"].GetString()) + "\"}");
    INFO(done.text());
    CHECK((!done.is_error() || done.text().find("already current") != std::string::npos));
    check_files(tree);
  }
  for (const std::string &tag : joined) CHECK(sources.count(tag) == 0);
  for (const auto &s : list.structured()["snapshots"].GetArray()) {
    CHECK_FALSE(files.call("snapshots_delete", member("checkpoint", s["checkpoint"].GetString()))
                    .is_error());
  }
}

}  // namespace

TEST_CASE("after 200 kills at random times, files and snapshots are old or new, never partial") {
  Tree tree;
  fs::create_directory(tree.outside() / "kept");
  std::mt19937 random(20251123);
  for (int round = 0; round < rounds; ++round) {
    INFO("round " << round);
    int begun[2];
    REQUIRE(::pipe2(begun, O_CLOEXEC) == 0);
    const pid_t child = ::fork();
    if (child == 0) work(tree, round, begun[1]);
    REQUIRE(child > 0);
    ::close(begun[1]);
    kill_at(child, begun[0], random_strike(&random));
    ::close(begun[0]);
    check_files(tree);
    check_snapshots(tree);
  }
  // Writing to each path again removes its leftover temporary file.
  Files files(config(tree));
  for (int i = 0; i < many_files; ++i) {
    files.call("file_write", R"({"path":"d/)" + std::to_string(i) + R"(","content":""})");
  }
  CHECK(std::distance(fs::directory_iterator(tree.root() / "d"), fs::directory_iterator()) ==
        many_files);
}
