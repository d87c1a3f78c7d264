// Tests confine(): which parts it reports, and what a confined process can still do.
// breakout_test.cpp tests that the confinement cannot be bypassed.
#include "sandbox/confine.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <netdb.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include "base/owned_fd.hpp"
#include "sandbox/features.hpp"
#include "sandbox/landlock.hpp"

using namespace bulkhead;

namespace {

// Runs `body` in a child process and returns its result. If the child fails, the result starts with
// "exit STATUS".
std::string in_child(const std::function<std::string()> &body) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    const std::string text = body();
    const ssize_t n = ::write(ends[1], text.data(), text.size());
    ::_exit(n == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  std::string out;
  char piece[4096];
  for (ssize_t n; (n = ::read(ends[0], piece, sizeof piece)) > 0;) {
    out.append(piece, static_cast<std::size_t>(n));
  }
  ::close(ends[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return status == 0 ? out : "exit " + std::to_string(status) + " " + out;
}

std::string join(const std::vector<std::string> &words) {
  std::string out;
  for (const std::string &word : words) out += word + " ";
  return out;
}

Confinement reactor_role() {
  Confinement confinement;
  confinement.role = "test";
  confinement.paths = library_paths();
  if (::geteuid() == 0) confinement.ids = {{65534, 65534}};
  return confinement;
}

std::string confined(const Confinement &confinement, const std::function<std::string()> &body) {
  return in_child([&]() -> std::string {
    const auto enforced = confine(confinement);
    if (!enforced) return "error: " + enforced.error().text;
    return body();
  });
}

}  // namespace

TEST_CASE("confine() reports the parts in force and the missing parts") {
  const Confinement confinement = reactor_role();
  const std::string said = in_child([&]() -> std::string {
    const auto enforced = confine(confinement);
    if (!enforced) return "error: " + enforced.error().text;
    return "in force: " + join(enforced->in_force) + "missing: " + join(enforced->missing);
  });
  INFO(said);
  CHECK(said.find("error") == std::string::npos);
  CHECK(said.find("no-new-privs") < said.find("missing:"));
  CHECK(said.find("no-capabilities") < said.find("missing:"));
}

TEST_CASE("threads, memory, name resolution and socket pairs work in a confined process") {
  Confinement confinement = reactor_role();
  confinement.network = true;
  for (const PathRule &rule : network_config_paths()) confinement.paths.push_back(rule);
  CHECK(confined(confinement, []() -> std::string {
          std::string out;
          std::thread([&out] { out += "thread "; }).join();
          std::vector<char> big(8U << 20, 'x');
          out += big.back() == 'x' ? "memory " : "";
          int pair[2];
          if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0) out += "pair ";
          addrinfo *found = nullptr;
          if (::getaddrinfo("localhost", "80", nullptr, &found) == 0) out += "name ";
          if (found != nullptr) ::freeaddrinfo(found);
          return out;
        }) == "thread memory pair name ");
}

// Returns true if confine() reports this step as missing, as it does in a sanitizer build or if the
// kernel does not support the step.
bool lacks_step(const char *step) {
  Confinement confinement = reactor_role();
  confinement.memory_bytes = 64U << 20;
  const std::string missing = in_child([&]() -> std::string {
    const auto enforced = confine(confinement);
    return enforced ? " " + join(enforced->missing) : enforced.error().text;
  });
  return missing.find(" " + std::string(step) + " ") != std::string::npos;
}

TEST_CASE("a process that may not start programs can neither fork nor exec") {
  if (lacks_step("seccomp")) {
    WARN("SKIP confine_test: no seccomp in this build or kernel");
    return;
  }
  CHECK(confined(reactor_role(), []() -> std::string {
          const pid_t child = ::fork();
          if (child == 0) ::_exit(0);
          return child < 0 && errno == EPERM ? "refused" : "forked";
        }) == "refused");
}

TEST_CASE("a pointer must be null as a whole where only a null pointer is allowed") {
  if (lacks_step("seccomp")) {
    WARN("SKIP confine_test: no seccomp in this build or kernel");
    return;
  }
  const std::string file = "confine_test." + std::to_string(::getpid());
  std::ofstream(file) << "x";
  REQUIRE(::chmod(file.c_str(), 0666) == 0);
  struct stat before{}, after{};
  const timespec old[2] = {{1, 0}, {1, 0}};
  REQUIRE(::utimensat(AT_FDCWD, file.c_str(), old, 0) == 0);
  REQUIRE(::stat(file.c_str(), &before) == 0);
  const std::string path = std::filesystem::absolute(file).string();
  // The low 32 bits of this address are zero.
  const auto at = reinterpret_cast<char *>(std::uintptr_t{1} << 32);
  CHECK(confined(reactor_role(), [&]() -> std::string {
          void *page = ::mmap(at, 4096, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
          if (page != at) return "no memory there";
          std::string out;
          const auto add = [&](long result) {
            out += result == 0 ? "done " : errno == EPERM ? "refused " : "failed ";
          };
          ::memcpy(at, path.c_str(), path.size() + 1);
          add(::syscall(SYS_utimensat, AT_FDCWD, at, nullptr, 0));
          rlimit limit{};
          add(::syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, &limit));
          --limit.rlim_cur;
          ::memcpy(at, &limit, sizeof limit);
          add(::syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, at, nullptr));
          int ends[2];
          add(::pipe2(ends, O_CLOEXEC));
          add(::futimens(ends[0], nullptr));
          return out;
        }) == "refused done refused done done ");
  REQUIRE(::stat(file.c_str(), &after) == 0);
  CHECK(after.st_mtim.tv_sec == before.st_mtim.tv_sec);
  std::filesystem::remove(file);
}

TEST_CASE("only a role that writes files may clone files") {
  if (lacks_step("seccomp")) {
    WARN("SKIP confine_test: no seccomp in this build or kernel");
    return;
  }
  char folder[] = "/tmp/bulkhead-clone-XXXXXX";
  REQUIRE(::mkdtemp(folder) != nullptr);
  const std::string from = std::string(folder) + "/from";
  const std::string to = std::string(folder) + "/to";
  std::ofstream(from) << "content";
  const OwnedFd source(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
  const OwnedFd target(::open(to.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  // The filter rejects the call with EPERM, whether or not the file system supports cloning.
  const auto clone = [&]() -> std::string {
    return ::ioctl(target.get(), FICLONE, source.get()) != 0 && errno == EPERM ? "refused"
                                                                               : "asked";
  };
  CHECK(confined(reactor_role(), clone) == "refused");
  Confinement writer = reactor_role();
  writer.paths.push_back({folder, -1, PathRule::Access::read_write});
  CHECK(confined(writer, clone) == "asked");
  for (const std::string &path : {from, to}) ::unlink(path.c_str());
  ::rmdir(folder);
}

TEST_CASE("limits are enforced and no core file is written") {
  const bool no_memory_limit = lacks_step("memory-limit");
  Confinement confinement = reactor_role();
  confinement.descriptors = 64;
  confinement.memory_bytes = 64U << 20;
  confinement.file_bytes = 1U << 20;
  CHECK(confined(confinement, [&]() -> std::string {
          rlimit files{}, memory{}, core{};
          ::getrlimit(RLIMIT_NOFILE, &files);
          ::getrlimit(RLIMIT_DATA, &memory);
          ::getrlimit(RLIMIT_CORE, &core);
          std::ostringstream out;
          out << files.rlim_max << " " << core.rlim_max;
          if (!no_memory_limit) out << " " << (memory.rlim_max >> 20);
          return out.str();
        }) == (no_memory_limit ? "64 0" : "64 0 64"));
  if (no_memory_limit) WARN("SKIP confine_test: no memory limit in this build");
}

TEST_CASE("the environment is cleared, including in /proc") {
  ::setenv("BULKHEAD_TEST_CANARY", "canary-in-the-environment", 1);
  CHECK(in_child([]() -> std::string {
          clear_environment();
          return ::getenv("BULKHEAD_TEST_CANARY") == nullptr && ::getenv("PATH") == nullptr
                     ? "gone"
                     : "there";
        }) == "gone");
  // /proc/self/environ shows the environment that the test program was started with. A forked child
  // has its own copy, so the child can clear its copy and check it.
  CHECK(in_child([]() -> std::string {
          clear_environment();
          std::ifstream shown("/proc/self/environ");
          std::string text((std::istreambuf_iterator<char>(shown)), {});
          return std::all_of(text.begin(), text.end(), [](char c) { return c == '\0'; }) ? "blank"
                                                                                         : text;
        }) == "blank");
  ::unsetenv("BULKHEAD_TEST_CANARY");
}

TEST_CASE("close_other_descriptors() keeps the listed descriptors") {
  CHECK(in_child([]() -> std::string {
          const int keep = ::open("/dev/null", O_RDONLY), drop = ::open("/dev/null", O_RDONLY);
          // Keep every descriptor except `drop`, because in_child() and the test runner may be
          // using any of the others.
          std::vector<int> all;
          for (int fd = 3; fd < 64; ++fd) {
            if (fd != drop) all.push_back(fd);
          }
          close_other_descriptors(all);
          return std::string(::fcntl(keep, F_GETFD) >= 0 ? "kept " : "lost ") +
                 (::fcntl(drop, F_GETFD) < 0 ? "closed" : "open");
        }) == "kept closed");
}

TEST_CASE("in mode require, confine() fails and names the missing parts") {
  Confinement confinement = reactor_role();
  confinement.mode = ConfineMode::require;
  const std::string said = confined(confinement, [] { return std::string("all there"); });
  INFO(said);
  const bool expected =
      said == "all there" || said.find("this system lacks: ") != std::string::npos;
  CHECK(expected);
}

TEST_CASE("probe_features() does not change this process") {
  const auto before = landlock_abi();
  const Features features = probe_features();
  CHECK(features.landlock == before);
  CHECK(to_lines(features).size() == 11);
  CHECK(to_lines(Features{}).front() == "landlock: no");
  // Checks that confine() reports a part as in force exactly when the kernel supports it.
  const std::string said = in_child([]() -> std::string {
    const auto enforced = confine(reactor_role());
    return enforced ? join(enforced->in_force) : "error: " + enforced.error().text;
  });
  CHECK((said.find("network-namespace") != std::string::npos) == features.network_namespaces);
  CHECK((said.find("landlock-files") != std::string::npos) == (features.landlock > 0));
}

TEST_CASE("a launcher can create namespaces with mounts for its children") {
  if (!probe_features().mount_namespaces) {
    WARN("SKIP confine_test: no mount namespaces here");
    return;
  }
  Confinement confinement;
  confinement.role = "launcher";
  confinement.network = confinement.exec = confinement.namespaces = true;
  confinement.hide = {"/etc/passwd"};
  // Runs as the current user. If that is root, the process stays root and must be able to map its
  // own ID.
  CHECK(confined(confinement, []() -> std::string {
          if (std::ifstream("/etc/passwd").get() >= 0) {
            return "not hidden";
          }
          const pid_t child = ::fork();
          if (child == 0) {
            ::prctl(PR_SET_DUMPABLE, 1);
            const std::string map =
                std::to_string(::geteuid()) + " " + std::to_string(::geteuid()) + " 1";
            if (::unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID) != 0) ::_exit(1);
            const OwnedFd fd(::open("/proc/self/uid_map", O_WRONLY));
            if (::write(fd.get(), map.data(), map.size()) < 0) ::_exit(2);
            if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) ::_exit(3);
            if (::mount("none", "/tmp", "tmpfs", 0, nullptr) != 0) ::_exit(4);
            ::_exit(::umount2("/etc/passwd", MNT_DETACH) == 0 ? 5 : 0);
          }
          int status = 0;
          ::waitpid(child, &status, 0);
          return "child " + std::to_string(WEXITSTATUS(status));
        }) == "child 0");
}
