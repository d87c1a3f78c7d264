// Tests the instance lock and the parent watch of `bulkhead aggregator`.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "common/instance_lock.hpp"
#include "common/parent_watch.hpp"
#include "common/test_folder.hpp"

using namespace bulkhead;
using namespace bulkhead::program;

TEST_CASE("A32 only one process can hold the lock, and a leftover file is not locked") {
  const TestFolder folder;
  const std::string path = folder / "lock";
  std::ofstream(path) << "4194303\n";  // PID of a process that does not exist
  auto first = acquire_instance_lock(path);
  REQUIRE(first);
  REQUIRE(*first);
  std::string stamped;
  std::getline(std::ifstream(path), stamped);
  CHECK(stamped == std::to_string(::getpid()));
  CHECK((::fcntl(first->get(), F_GETFD) & FD_CLOEXEC) != 0);
  auto second = acquire_instance_lock(path);
  REQUIRE(second);
  CHECK_FALSE(*second);
  first->reset();
  second = acquire_instance_lock(path);
  REQUIRE(second);
  CHECK(*second);
  // The lock file was removed, so the next process creates a new one.
  std::filesystem::remove(path);
  auto third = acquire_instance_lock(path);
  REQUIRE(third);
  CHECK(*third);
}

TEST_CASE("A32 a lock path that is not a regular file is rejected and not changed") {
  const TestFolder folder;
  const std::string victim = folder / "victim", link = folder / "link", fifo = folder / "fifo";
  std::ofstream(victim) << "keep";
  std::filesystem::create_symlink(victim, link);
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  for (const std::string &path : {link, fifo, folder.path, folder / "none/lock"}) {
    INFO(path);
    CHECK_FALSE(acquire_instance_lock(path).has_value());
  }
  std::string text;
  std::getline(std::ifstream(victim), text);
  CHECK(text == "keep");
}

TEST_CASE("A32 only the actual parent can be watched") {
  auto foreign = watch_parent(::getpid());
  REQUIRE(foreign);
  CHECK_FALSE(*foreign);
  auto parent = watch_parent(::getppid());
  REQUIRE(parent);
  REQUIRE(*parent);
  pollfd ready{parent->get(), POLLIN, 0};
  CHECK(::poll(&ready, 1, 0) == 0);  // the parent is still running
}

TEST_CASE("A14 the parent's exit is detected even if its pipes stay open") {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const pid_t middle = ::fork();
  REQUIRE(middle >= 0);
  if (middle == 0) {
    const pid_t own = ::getpid();
    if (::fork() == 0) {
      auto parent = watch_parent(own);
      char seen = 'n';
      const bool ok = parent.has_value() && *parent;
      if (::write(ends[1], ok ? "w" : "e", 1) == 1 && ok) {
        pollfd ready{parent->get(), POLLIN, 0};
        if (::poll(&ready, 1, 20'000) == 1) seen = 'y';
      }
      ::_exit(::write(ends[1], &seen, 1) == 1 ? 0 : 1);
    }
    ::pause();
    ::_exit(0);
  }
  char answer = 0;
  REQUIRE(::read(ends[0], &answer, 1) == 1);
  CHECK(answer == 'w');
  ::kill(middle, SIGKILL);
  ::waitpid(middle, nullptr, 0);
  REQUIRE(::read(ends[0], &answer, 1) == 1);
  CHECK(answer == 'y');
  ::close(ends[0]);
  ::close(ends[1]);
}
