// Tests the lifecycle of child processes: failed starts, exits, termination and cleanup.
#include <dirent.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "connector-stdio/test_up.hpp"

using namespace connector_stdio;

namespace {

bool alive(pid_t pid) {
  return ::kill(pid, 0) == 0;
}

bool has_children() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

// Returns true if the process does not exist or is a zombie. A zombie counts because its new parent
// may be slow to reap it.
bool dead(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  if (!std::getline(stat, text)) return true;
  const std::size_t paren = text.rfind(')');
  return paren == std::string::npos || text[paren + 2] == 'Z' || text[paren + 2] == 'X';
}

std::size_t open_descriptors() {
  std::size_t n = 0;
  DIR *folder = ::opendir("/proc/self/fd");
  while (::readdir(folder) != nullptr) ++n;
  ::closedir(folder);
  return n;
}

pid_t pid_in(const std::string &message) {
  return static_cast<pid_t>(std::stol(message.substr(1)));
}

pid_t only_child() {
  std::ifstream list("/proc/self/task/" + std::to_string(::getpid()) + "/children");
  pid_t pid = 0;
  list >> pid;
  return pid;
}

}  // namespace

TEST_CASE("a failed start reports the reason") {
  TestUp up;
  std::string why;
  REQUIRE(up.open_json(1, R"({"command":"no-such-program-here"})", &why) == BH_E_NOT_FOUND);
  REQUIRE(why == "command \"no-such-program-here\" of server \"weather\" was not found on PATH");
  // The host's reason for a failed start is passed on unchanged.
  REQUIRE(up.open_json(1, R"({"command":"/no/such/program"})", &why) == BH_E_NOT_FOUND);
  REQUIRE(why == "fake host: command \"/no/such/program\" of server \"weather\": ENOENT");
  REQUIRE(up.open_json(1, R"({"command":"/etc/passwd"})", &why) == BH_E_DENIED);
  REQUIRE(up.open_json(1, R"({"command":"sh","cwd":"/no/folder"})", &why) == BH_E_NOT_FOUND);
  REQUIRE(up.open_json(1, R"({"command":"sh","env":{"PATH":"bin::/nowhere"}})", &why) ==
          BH_E_NOT_FOUND);
  REQUIRE_FALSE(has_children());
  REQUIRE(up.host.watches() == 0);
}

TEST_CASE("the error names a program on PATH that is not executable") {
  bh::testing::FakeHost scratch;
  const auto *store = bh::Host(scratch.host()).ext<bh_host_store>(BH_EXT_HOST_STORE);
  const std::string folder(bh::view(store->folder(&scratch)));
  std::ofstream(folder + "/plain") << "text\n";
  TestUp up;
  std::string why;
  const std::string env = R"(,"env":{"PATH":")" + folder + "\"}}";
  REQUIRE(up.open_json(1, R"({"command":"plain")" + env, &why) == BH_E_DENIED);
  REQUIRE(why == "command \"plain\" of server \"weather\" is on PATH, but not executable");
}

TEST_CASE("the error for an invalid definition names the server and the member, but no values") {
  TestUp up;
  std::string why;
  const auto [json, member] = GENERATE(table<std::string, std::string>({
      {R"({})", "command"},
      {R"({"command":""})", "command"},
      {R"({"command":["s3cret"]})", "command"},
      {"{\"command\":\"sh\\u0000s3cret\"}", "command"},
      {R"({"command":"sh","args":"s3cret"})", "args"},
      {R"({"command":"sh","args":[true]})", "args"},
      {R"({"command":"sh","env":{"A=s3cret":"x"}})", "env"},
      {R"({"command":"sh","env":{"A":null}})", "env"},
      {R"({"command":"sh","cwd":false})", "cwd"},
      {R"({"command":"sh","stderr_file":{}})", "stderr_file"},
      {R"({"command":"sh","stderr_bytes":-1})", "stderr_bytes"},
      {R"(["s3cret"])", "object"},
      {R"({"command":"sh")", "object"},
  }));
  REQUIRE(up.open_json(1, json, &why) == BH_E_INVALID);
  INFO(why);
  REQUIRE(why.find("weather") != std::string::npos);
  REQUIRE(why.find(member) != std::string::npos);
  REQUIRE(why.find("s3cret") == std::string::npos);
}

TEST_CASE(
    "when a child exits, its last responses, status and log lines are reported without secrets") {
  TestUp up;
  up.close_when_down = GENERATE(false, true);
  up.open(1, "exit", "k123", R"(,"env":{"WEATHER_API_KEY":"k123"})");
  up.send(1, {"{1}"});
  REQUIRE(up.wait_down(1));
  REQUIRE(up.lanes[1].messages == std::vector<std::string>{"{last words}"});
  REQUIRE(up.lanes[1].downs[0].first == BH_E_UNAVAILABLE);
  REQUIRE(up.lanes[1].downs[0].second ==
          "server \"weather\" exited with status 7; its last lines: starting | fatal: key *** "
          "refused");
  if (!up.close_when_down) {
    REQUIRE(up.send(1, {"{2}"}) == BH_E_UNAVAILABLE);
    up.close(1);
  }
  REQUIRE(up.wait_closed(1));
  REQUIRE(up.lanes[1].downs.size() == 1);
  REQUIRE(up.lanes[1].closed == 1);
  REQUIRE_FALSE(has_children());
}

TEST_CASE("a child killed in the middle of a call is reported") {
  TestUp up;
  up.open(1, "deaf");
  REQUIRE(up.wait_messages(1, 1));
  up.send(1, {"{1}"});
  const pid_t child = only_child();
  REQUIRE(child > 0);
  ::kill(child, SIGKILL);
  REQUIRE(up.wait_down(1));
  REQUIRE(up.lanes[1].downs[0].second == "server \"weather\" was killed by signal 9 (SIGKILL)");
  up.close(1);
  REQUIRE(up.wait_closed(1));
}

TEST_CASE("a child that closes a stream without exiting is reported as down, and killed on close") {
  TestUp up;
  const std::string what = GENERATE("output", "input");
  up.open(1, "close-" + what);
  if (what == "input") {
    REQUIRE(up.wait_messages(1, 1));
    up.send(1, {"{1}"});
  }
  REQUIRE(up.wait_down(1));
  REQUIRE(up.lanes[1].downs[0].second ==
          "server \"weather\" has closed its standard " + what + " without exiting");
  up.close(1);
  REQUIRE(up.wait_closed(1));
  REQUIRE_FALSE(has_children());
}

TEST_CASE("a child that ignores the end of input and SIGTERM is killed") {
  TestUp up;
  up.open(1, "stubborn");
  REQUIRE(up.wait_messages(1, 1));
  up.close(1);
  REQUIRE(up.wait_closed(1));
  REQUIRE(up.host.logged("killing it with SIGKILL"));
  REQUIRE(up.lanes[1].downs.empty());
  REQUIRE_FALSE(has_children());
}

TEST_CASE("processes started by a child are killed with it") {
  TestUp up;
  const std::string mode = GENERATE("grandchild", "grandchild-exit");
  up.open(1, mode);
  REQUIRE(up.wait_messages(1, 1));
  const pid_t grandchild = pid_in(up.lanes[1].messages[0]);
  REQUIRE(alive(grandchild));
  if (mode == "grandchild-exit") {  // the leader exits first
    up.send(1, {"{}"});
    REQUIRE(up.wait_down(1));
  }
  up.close(1);
  REQUIRE(up.wait_closed(1));
  REQUIRE(up.host.run_until([&] { return dead(grandchild); }, 20'000));
}

TEST_CASE("stop() leaves no process, whatever the state of the lanes") {
  TestUp up;
  up.open(1, "stubborn");
  up.open(2, "echo");
  up.open(3, "grandchild");
  up.open(4, "exit");
  REQUIRE(up.wait_messages(1, 1));
  REQUIRE(up.wait_messages(3, 1));
  up.send(4, {"{}"});
  REQUIRE(up.wait_down(4));
  const pid_t grandchild = pid_in(up.lanes[3].messages[0]);
  up.close(1);
  up.send(2, {"{queued}"});
  up.stop();
  REQUIRE(up.lanes[1].closed == 1);
  REQUIRE_FALSE(has_children());
  REQUIRE(up.host.run_until([&] { return dead(grandchild); }, 20'000));
}

TEST_CASE("the host may close a lane while a message is delivered") {
  TestUp up;
  up.on_message = [&](bh_lane lane) {
    if (up.lanes[lane].messages.size() == 1) up.close(lane);
  };
  up.open(1, "echo");
  for (int i = 0; i < 5; ++i) up.send(1, {"{1}"});
  REQUIRE(up.wait_closed(1));
  REQUIRE(up.lanes[1].messages.size() == 1);
}

TEST_CASE("standard error goes to a file of limited size with mode 0600") {
  TestUp up;
  const auto *store = bh::Host(up.host.host()).ext<bh_host_store>(BH_EXT_HOST_STORE);
  const std::string path = std::string(bh::view(store->folder(&up.host))) + "/weather.log";
  up.open(1, "stderr", "5000", R"(,"stderr_file":")" + path + R"(","stderr_bytes":20000)");
  REQUIRE(up.wait_messages(1, 1));
  up.close(1);
  REQUIRE(up.wait_closed(1));
  struct stat info{};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  REQUIRE((info.st_mode & 0777) == 0600);
  REQUIRE(info.st_size <= 20'000);
  REQUIRE(std::filesystem::file_size(path + ".1") <= 20'000);
  std::ifstream file(path);
  std::string line, last;
  while (std::getline(file, line)) last = line;
  REQUIRE(last == "line 4999 of the log");
}

TEST_CASE("the first line on standard output that is not a message is in the server's log file") {
  TestUp up;
  const auto *store = bh::Host(up.host.host()).ext<bh_host_store>(BH_EXT_HOST_STORE);
  const std::string path = std::string(bh::view(store->folder(&up.host))) + "/banner.log";
  up.open(1, "banner", "", R"(,"stderr_file":")" + path + R"(","stderr_bytes":20000)");
  up.send(1, {"{1}"});
  REQUIRE(up.wait_messages(1, 1));
  up.close(1);
  REQUIRE(up.wait_closed(1));
  std::ifstream file(path);
  std::string line;
  REQUIRE(std::getline(file, line));
  CHECK(line ==
        "[bulkhead: standard output has lines that are not MCP messages; the first line: Server v1 "
        "listening on stdio]");
  CHECK_FALSE(std::getline(file, line));
}

TEST_CASE("a log file that cannot be written is reported once and has no other effect") {
  TestUp up;
  up.open(1, "stderr", "20000", R"(,"stderr_file":"/no/such/folder/x.log")");
  up.send(1, {"{1}"});
  REQUIRE(up.wait_messages(1, 2));
  std::size_t told = 0;
  for (const auto &l : up.host.logs()) {
    told += l.text.find("cannot be written") != std::string::npos ? 1 : 0;
  }
  REQUIRE(told == 1);
}

TEST_CASE("1,000 children leak no process, descriptor, watch or timer") {
  TestUp up;
  up.open(0, "echo");
  REQUIRE(up.send(0, {"{0}"}) == BH_OK);
  REQUIRE(up.wait_messages(0, 1));
  up.close(0);
  REQUIRE(up.wait_closed(0));
  const std::size_t before = open_descriptors();
  for (bh_lane lane = 1; lane <= 1000; lane += 10) {
    for (bh_lane i = lane; i < lane + 10; ++i) {
      up.open(i, "echo");
      up.send(i, {"{1}"});
    }
    for (bh_lane i = lane; i < lane + 10; ++i) {
      REQUIRE(up.wait_messages(i, 1));
      up.close(i);
    }
    for (bh_lane i = lane; i < lane + 10; ++i) REQUIRE(up.wait_closed(i));
  }
  REQUIRE(open_descriptors() == before);
  REQUIRE(up.host.watches() == 0);
  REQUIRE(up.host.timers() == 0);
  REQUIRE_FALSE(has_children());
}
