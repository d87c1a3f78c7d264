#include "sandbox/landlock.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdlib>
#include <functional>

using namespace bulkhead;

namespace {

// Runs `attempt` in a child process that is restricted by these rules. Returns its result: an errno
// value, or 0 for success.
int in_domain(const LandlockRules &rules, const std::function<int()> &attempt) {
  auto ruleset = landlock_ruleset(rules);
  REQUIRE(ruleset.has_value());
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (landlock_restrict_self(ruleset->get()) != 0) ::_exit(255);
    ::_exit(attempt());
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

int try_open(const char *path, int flags) {
  const int fd = ::open(path, flags | O_CLOEXEC, 0600);
  if (fd < 0) return errno;
  ::close(fd);
  return 0;
}

}  // namespace

TEST_CASE("only paths that a rule allows can be opened") {
  if (landlock_abi() < 1) {
    WARN("SKIP landlock_test: this kernel has no Landlock");
    return;
  }
  char folder[] = "/tmp/landlock-test-XXXXXX";
  REQUIRE(::mkdtemp(folder) != nullptr);
  const std::string inside = std::string(folder) + "/file";
  const OwnedFd fd(::open(folder, O_PATH | O_CLOEXEC));
  LandlockRules rules;
  rules.paths = {{fd.get(), ll_read_write}};
  CHECK(in_domain(rules, [&] { return try_open(inside.c_str(), O_RDWR | O_CREAT); }) == 0);
  CHECK(in_domain(rules, [] { return try_open("/etc/passwd", O_RDONLY); }) == EACCES);
  rules.paths = {{fd.get(), ll_read}};
  CHECK(in_domain(rules, [&] { return try_open(inside.c_str(), O_RDONLY); }) == 0);
  CHECK(in_domain(rules, [&] { return try_open(inside.c_str(), O_RDWR); }) == EACCES);
  // A rule for a regular file may include rights that apply only to folders.
  const OwnedFd file(::open(inside.c_str(), O_PATH | O_CLOEXEC));
  rules.paths = {{file.get(), ll_read_write}};
  CHECK(in_domain(rules, [&] { return try_open(inside.c_str(), O_RDWR); }) == 0);
  CHECK(in_domain(rules, [&] { return try_open(folder, O_RDONLY | O_DIRECTORY); }) == EACCES);
  ::unlink(inside.c_str());
  ::rmdir(folder);
}

TEST_CASE("a signal to a process outside the domain is rejected") {
  if (landlock_abi() < 6) {
    WARN("SKIP landlock_test: no scopes in this kernel");
    return;
  }
  const pid_t other = ::getpid();
  CHECK(in_domain({}, [other] { return ::kill(other, 0) == 0 ? 0 : errno; }) == EPERM);
  CHECK(in_domain({}, [] { return ::kill(::getpid(), 0) == 0 ? 0 : errno; }) == 0);
}

TEST_CASE("TCP connections are possible only to the allowed ports") {
  if (landlock_abi() < 4) {
    WARN("SKIP landlock_test: no TCP rules in this kernel");
    return;
  }
  const OwnedFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t n = sizeof address;
  auto *generic = reinterpret_cast<sockaddr *>(&address);
  REQUIRE(::bind(listener.get(), generic, n) == 0);
  REQUIRE(::listen(listener.get(), 4) == 0);
  REQUIRE(::getsockname(listener.get(), generic, &n) == 0);
  const auto attempt = [&] {
    const OwnedFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    return ::connect(fd.get(), generic, n) == 0 ? 0 : errno;
  };
  LandlockRules rules;
  CHECK(in_domain(rules, attempt) == EACCES);
  rules.ports = {{ntohs(address.sin_port), ll_tcp_connect}};
  CHECK(in_domain(rules, attempt) == 0);
}

TEST_CASE("landlock_missing() names the rights that a kernel lacks") {
  CHECK(landlock_missing({}, 0) ==
        std::vector<std::string>{"landlock-files", "landlock-tcp", "landlock-scopes"});
  CHECK(landlock_missing({}, 2) == std::vector<std::string>{"landlock-truncate", "landlock-ioctl",
                                                            "landlock-tcp", "landlock-scopes"});
  CHECK(landlock_missing({}, 7).empty());
  LandlockRules only_signals;
  only_signals.fs = only_signals.net = 0;
  CHECK(landlock_missing(only_signals, 5) == std::vector<std::string>{"landlock-scopes"});
}
