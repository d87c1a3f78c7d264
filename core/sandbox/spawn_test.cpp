// Tests how children are started, what they inherit, and how they exit.
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <optional>
#include <thread>

#include "sandbox/child_view.hpp"
#include "sandbox/spawn_launch.hpp"
#include "sandbox/spawn_world.hpp"

using namespace bulkhead;

namespace {

// Returns true if no process holds a lock on this file. The daemon that the test's child starts
// holds a lock until it is killed.
bool no_holder(const std::string &lock) {
  const OwnedFd fd(::open(lock.c_str(), O_RDWR | O_CLOEXEC));
  struct flock whole{};
  whole.l_type = F_WRLCK;
  return fd && ::fcntl(fd.get(), F_SETLK, &whole) == 0;
}

}  // namespace
// Waits until the daemon has taken the lock.
bool gets_holder(const std::string &lock) {
  for (int i = 0; i < 2'000 && no_holder(lock); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return !no_holder(lock);
}
TEST_CASE("killing a server kills its processes in other sessions") {
  const std::string mode = GENERATE("home-read-only", "off", "no namespaces");
  const bool by_itself = GENERATE(false, true);
  if (mode == "home-read-only" && skip_without_namespaces()) return;
  World w([&](SpawnOptions &options) { options.namespaces = mode != "no namespaces"; });
  const std::string lock = w.project + "/lock";
  put_file(lock);
  std::vector<std::string> attempts{"daemon:" + lock};
  if (by_itself) attempts.emplace_back("exit:3");
  const std::string sandbox = mode == "off" ? R"(,"sandbox":{"mode":"off"})" : "";
  std::optional<Running> run(std::in_place, w,
                             R"("command":"x","args":[)" + in_quotes(w.project) + "]" + sandbox,
                             attempts);
  INFO(mode);
  CHECK(run->of("daemon:" + lock) == "ok");
  if (!by_itself) {
    REQUIRE(gets_holder(lock));
    REQUIRE(w.spawner->kill(run->child.id, SIGKILL) == BH_OK);
  }
  REQUIRE(run->wait_end());
  CHECK(no_holder(lock));  // killed before reap() reports the child's exit
}

TEST_CASE("only a host with the adopt option kills the orphans of a killed first process") {
  const bool adopt = GENERATE(false, true);
  World w([&](SpawnOptions &options) { options.adopt = adopt; });
  int subreaper = -1;
  REQUIRE(::prctl(PR_GET_CHILD_SUBREAPER, &subreaper) == 0);
  CHECK(subreaper == (adopt ? 1 : 0));
  if (!adopt) return;
  const std::string lock = w.project + "/lock";
  put_file(lock);
  // A process that this program itself started and that does not belong to a server.
  const pid_t own = ::fork();
  if (own == 0) {
    for (;;) ::pause();
  }
  Running run(w, R"("command":"x","sandbox":{"mode":"off"})", {"daemon:" + lock});
  CHECK(run.of("daemon:" + lock) == "ok");
  REQUIRE(gets_holder(lock));
  REQUIRE(::kill(run.child.pid, SIGKILL) == 0);
  run.reap();
  CHECK(no_holder(lock));
  CHECK(::waitpid(own, nullptr, WNOHANG) == 0);  // it is still running
  ::kill(own, SIGKILL);
  CHECK(::waitpid(own, nullptr, 0) == own);
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);  // no other children are left
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST_CASE("the exit status of a server is reported in every type of sandbox") {
  World w;
  const std::string mode = GENERATE("strict", "home-read-only", "off");
  const std::string definition = R"("command":"x","sandbox":{"mode":")" + mode + "\"}";
  Running exits(w, definition, {"exit:7"});
  bh_child_end end = exits.reap();
  CHECK(end.how == BH_CHILD_EXITED);
  CHECK(end.status == 7);
  CHECK(w.spawner->kill(exits.child.id, SIGTERM) == BH_STALE);
  Running dies(w, definition, {"die:15"});
  end = dies.reap();
  CHECK(end.how == BH_CHILD_KILLED);
  CHECK(end.status == SIGTERM);
  Running asked(w, definition, {"pid:1"});
  CHECK(w.spawner->kill(asked.child.id, SIGTERM) == BH_OK);
  end = asked.reap();
  CHECK(end.how == BH_CHILD_KILLED);
  CHECK(end.status == SIGTERM);
  Running stubborn(w, definition, {"sleep-through-term"});
  CHECK(w.spawner->kill(stubborn.child.id, SIGTERM) == BH_OK);
  CHECK(w.spawner->kill(stubborn.child.id, SIGKILL) == BH_OK);
  CHECK(stubborn.reap().how != BH_CHILD_EXITED);
  CHECK(w.spawner->size() == 0);
}

TEST_CASE("a child leads a session, with default signal handling and no inherited descriptors") {
  World w;
  const std::string mode = GENERATE("home-read-only", "off");
  // Opened without O_CLOEXEC, as other code in this process might do.
  const int inherited = ::open("/dev/null", O_RDONLY);
  sigset_t pipe_signal, before;
  ::sigemptyset(&pipe_signal);
  ::sigaddset(&pipe_signal, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
  std::vector<std::string> attempts{"leader", "clean-signals", "blocking"};
  for (int fd = 3; fd < 40; ++fd) attempts.push_back("descriptor:" + std::to_string(fd));
  Running run(w, R"("command":"x","sandbox":{"mode":")" + mode + "\"}", attempts);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::close(inherited);
  for (const auto &[attempt, result] : run.results) {
    INFO(attempt);
    CHECK(result == (attempt.starts_with("descriptor") ? "EBADF" : "ok"));
  }
  CHECK(run.results.size() == attempts.size());
}

TEST_CASE("a failed start reports the reason and releases all resources") {
  World w;
  const std::string mode = GENERATE("home-read-only", "off");
  const std::string definition = R"("command":"x","sandbox":{"mode":")" + mode + "\"}";
  const auto text = [&](const std::string &program, const std::string &cwd = {}) {
    Running run(w, definition, {}, {}, cwd, program);
    if (run.status == BH_OK) {
      REQUIRE(w.reactor != nullptr);
      CHECK(run.reap().how == BH_CHILD_NOT_STARTED);
    }
    return run.error;
  };
  CHECK(text("/no/such/program") ==
        "command \"/no/such/program\" of server \"weather\" does not exist");
  CHECK(text("/etc/passwd") ==
        "command \"/etc/passwd\" of server \"weather\" cannot be run: Permission denied");
  put_file(w.project + "/script", "#!/no/such/interpreter\n");
  ::chmod((w.project + "/script").c_str(), 0755);
  CHECK(text(w.project + "/script").find("cannot be run: the interpreter") != std::string::npos);
  CHECK(text("/bin/sh", "/no/folder") ==
        "folder \"/no/folder\" of server \"weather\": No such file or directory");
  siginfo_t info{};
  CHECK(::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0);
  CHECK(w.spawner->size() == 0);
}

namespace {

// Returns the number of entries in this process's /proc/self/fd or /proc/self/task folder. For
// "fd", the count includes the descriptor used for counting.
std::ptrdiff_t count_own(const char *what) {
  return std::distance(fs::directory_iterator(std::string("/proc/self/") + what), {});
}

}  // namespace

TEST_CASE("more children than threads can start in parallel without leaking descriptors") {
  World w;
  {
    const Running first(w, R"("command":"x")", {"pid:2"});
  }  // creates the objects that exist once per process
  if (w.reactor) w.reactor->poll(0);
  const auto before = count_own("fd");
  constexpr std::size_t count = 2 * 16 + 3;
  std::vector<bh_child> children;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = "s" + std::to_string(i),
                      program = i % 3 == 2 ? "/no/such" : TEST_CHILD;
    const std::string definition =
        i % 2 == 0 ? R"({"command":"x"})" : R"({"command":"x","sandbox":{"mode":"off"}})";
    const std::vector<bh_str> argv{bh::str(program), bh::str("leader")};
    bh_spawn request{};
    request.size = sizeof request;
    request.server = bh::str(name);
    request.definition = bh::str(definition);
    request.program = bh::str(program);
    request.argv = argv.data();
    request.argc = 2;
    bh_child child{};
    child.size = sizeof child;
    bh_error why = bh::make_error();
    const bh_status status = w.spawner->spawn(request, &child, &why);
    INFO(bh::text(why));
    if (status == BH_OK) {
      children.push_back(child);
    } else {
      CHECK(w.reactor == nullptr);
      CHECK(i % 3 == 2);
    }
  }
  if (w.reactor) CHECK(children.size() == count);
  for (const bh_child &child : children) {
    pollfd ended{child.pidfd, POLLIN, 0};
    char line[64];
    pollfd ready{child.out, POLLIN, 0};
    REQUIRE(::poll(&ready, 1, 20'000) == 1);
    const bool answered = ::read(child.out, line, sizeof line) > 0;
    w.spawner->kill(child.id, SIGKILL);
    REQUIRE(::poll(&ended, 1, 20'000) == 1);
    bh_error why = bh::make_error();
    bh_child_end end{};
    end.size = sizeof end;
    end.why = &why;
    REQUIRE(w.spawner->reap(child.id, &end) == BH_OK);
    CHECK(answered == (end.how == BH_CHILD_KILLED));
    if (!answered) {
      CHECK(end.how == BH_CHILD_NOT_STARTED);
      CHECK(why.code == BH_E_NOT_FOUND);
      CHECK(std::string(bh::text(why)).find("does not exist") != std::string::npos);
    }
    for (const int fd : {child.in, child.out, child.err, child.pidfd}) ::close(fd);
  }
  if (w.reactor) w.reactor->poll(0);
  CHECK(count_own("fd") == before);
  CHECK(w.spawner->size() == 0);
  siginfo_t info{};
  CHECK(::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0);
  w.spawner.reset();
  // A joined thread may still be listed for a moment, until the kernel has removed it.
  for (int i = 0; i < 5'000 && count_own("task") != 1; ++i) ::usleep(1'000);
  CHECK(count_own("task") == 1);
}

TEST_CASE("a child can be killed during its start, and its input is kept until then") {
  World w;
  const std::string mode = GENERATE("home-read-only", "off");
  const bool spawner_goes = GENERATE(false, true);
  const std::string definition = R"("command":"x","sandbox":{"mode":")" + mode + "\"}";
  for (int i = 0; i < 8; ++i) {
    Running run(w, definition, {});  // does not wait for results
    REQUIRE(run.status == BH_OK);
    CHECK(::write(run.child.in, "x", 1) == 1);
    if (spawner_goes) continue;
    CHECK(w.spawner->kill(run.child.id, SIGKILL) == BH_OK);
    const bh_child_end end = run.reap();
    INFO(mode + ": " + run.error);
    CHECK(end.how == BH_CHILD_KILLED);
  }
  // A part is not missing just because a start was killed before it needed the part.
  const auto &missing = w.spawner->missing();
  CHECK(std::find(missing.begin(), missing.end(), "own-proc") == missing.end());
  if (!spawner_goes) {
    CHECK(w.spawner->size() == 0);
    return;
  }
  std::optional<Running> left(std::in_place, w, definition, std::vector<std::string>{});
  const int ended = ::dup(left->child.pidfd);
  left->status = BH_STALE;  // prevents ~Running() from closing the descriptors
  w.spawner.reset();
  pollfd ready{ended, POLLIN, 0};
  CHECK(::poll(&ready, 1, 0) == 1);
  for (const int fd : {left->child.in, left->child.out, left->child.err, left->child.pidfd, ended})
    ::close(fd);
  siginfo_t info{};
  CHECK(::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0);
}

TEST_CASE("cached locations expire and follow links") {
  World w;
  KnownPlaces places;
  std::uint64_t now = 1'000'000'000;
  places.refresh(now);
  const std::string secret = w.home + "/.late", real = real_path(w.project);
  CHECK(places.real(secret).empty());
  CHECK(places.real(w.home + "/.config/bulkhead/profile.toml") ==
        real_path(w.home + "/.config/bulkhead/profile.toml"));
  CHECK(places.real(w.home + "/notes.txt/below").empty());
  fs::create_directory_symlink(w.project, w.home + "/link");
  CHECK(places.real(w.home + "/link") == real);
  CHECK(places.real(w.home + "/link/data.txt") == real + "/data.txt");
  put_file(secret);
  fs::remove(w.home + "/link");
  fs::create_directory_symlink(w.home, w.home + "/link");
  places.refresh(now + KnownPlaces::fresh_ns - 1);
  CHECK(places.real(secret) == real_path(secret));  // missing paths are not cached
  CHECK(places.real(w.home + "/link") == real);
  places.refresh(now + KnownPlaces::fresh_ns);
  CHECK(places.real(w.home + "/link") == real_path(w.home));
}

TEST_CASE("a server with an invalid definition is not started") {
  World w;
  for (const char *sandbox :
       {R"("sandbox":5)", R"("sandbox":{"mode":"loose"})", R"("sandbox":{"write":["relative"]})",
        R"("sandbox":{"network":1})", R"("sandbox":{"ipc":"shared"})",
        R"("sandbox":{"memory_bytes":"much"})"}) {
    Running run(w, sandbox, {});
    INFO(run.error);
    CHECK(run.status == BH_E_INVALID);
    CHECK(run.error.find("weather") != std::string::npos);
  }
}

namespace {

// While the object exists, this process can open only `more` further descriptors.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t more) {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const int lowest_free = ::dup(0);
    REQUIRE(lowest_free >= 0);
    ::close(lowest_free);
    const rlimit few{static_cast<rlim_t>(lowest_free) + more, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors &) = delete;
  FewDescriptors &operator=(const FewDescriptors &) = delete;

 private:
  rlimit before_{};
};

}  // namespace

TEST_CASE("a server does not start if a mount that protects other paths fails") {
  if (skip_without_namespaces()) return;
  std::string deep = "/project";
  for (int i = 0; i < 100; ++i) deep += "/d";
  World w([&](SpawnOptions &options) {
    options.own.push_back(fs::path(options.home).parent_path().string() + deep + "/gateway.json");
  });
  put_file(w.folder + deep + "/gateway.json");
  put_file(w.folder + "/other/sub/inner/file");
  const auto reason = [&](const std::string &definition) {
    Running run(w, definition, {"pid:2"});
    INFO(run.results["pid:2"]);
    CHECK_FALSE(run.results["pid:2"] == "ok");
    if (run.status == BH_OK) CHECK(run.reap().how == BH_CHILD_NOT_STARTED);
    return run.error;
  };
  const std::string projects = R"("command":"x","args":[)" + in_quotes(w.project) + "]";
  {
    // A folder above the gateway's file cannot be mounted, so the server could rename it. With
    // fewer descriptors, an earlier step fails. The files need descriptors only for their mounts.
    std::string files;
    for (int i = 0; i < 80; ++i) {
      const std::string file = w.folder + "/extra/" + std::to_string(i);
      put_file(file);
      files += (i == 0 ? "" : ",") + in_quotes(file);
    }
    std::string why;
    for (rlim_t more = 60; more < 1'000 && why.find(" in its sandbox: ") == why.npos; more += 10) {
      const FewDescriptors few(more);
      why = reason(projects + R"(,"sandbox":{"read":[)" + files + "]}");
    }
    CHECK(why.find(w.project + "/d/d") != std::string::npos);
    CHECK(why.find(" in its sandbox: Too many open files") != std::string::npos);
  }
  Running again(w, projects, {"pid:2"});
  CHECK(again.of("pid:2") == "ok");
  // A link that a server can create causes too many of these mounts.
  deep = "/project";
  for (int i = 0; i < 258; ++i) deep += "/e";
  fs::create_directories(w.folder + deep);
  fs::create_directory_symlink(w.folder + deep, w.home + "/.config/gh");
  Running refused(w, projects, {"pid:2"});
  CHECK(refused.status == BH_E_LIMIT);
  CHECK(refused.error.find("of server \"weather\" is not started: more than 256 folders in " +
                           w.project + " contain ") != std::string::npos);
  fs::remove(w.home + "/.config/gh");
  // Without this mount, the server could change the file that it may only read.
  if (::geteuid() != 0) return;
  const std::string sub = w.folder + "/other/sub";
  REQUIRE(::chown(sub.c_str(), 12'345, 12'345) == 0);
  REQUIRE(::chmod(sub.c_str(), 0700) == 0);
  const std::string why =
      reason(R"("command":"x","sandbox":{"write":[)" + in_quotes(w.folder + "/other") +
             R"(],"read":[)" + in_quotes(sub + "/inner/file") + "]}");
  CHECK(why.find(sub + "/inner in its sandbox: Permission denied") != std::string::npos);
}

TEST_CASE("a server does not start without namespaces because too many files are open") {
  if (skip_without_namespaces()) return;
  World w;
  bool started = false;
  int failed = 0;
  std::string errors;
  for (rlim_t more = 1; more < 200 && !started; ++more) {
    const FewDescriptors few(more);
    Running run(w, R"("command":"x")", {"pid:2"});
    started = run.results["pid:2"] == "ok";
    failed += started ? 0 : 1;
    if (run.status == BH_OK && !started) run.reap();
    errors += run.error + "\n";
  }
  CHECK(started);
  CHECK(failed > 5);
  INFO(errors);
  CHECK(errors.find("/proc/self/mountinfo cannot be read") != std::string::npos);
  for (const std::string &line : w.log) {
    INFO(line);
    CHECK(line.find("namespaces") == std::string::npos);
    CHECK(line.find("landlock") == std::string::npos);
  }
}

TEST_CASE("only errors that last disable namespaces for all later starts") {
  for (const int error : {EPERM, EACCES, EINVAL, ENOSYS}) CHECK(is_lasting(error));
  for (const int error : {ENOBUFS, ENOMEM, EAGAIN, EMFILE, ENFILE, EBUSY, EINTR, EIO}) {
    INFO(error);
    CHECK_FALSE(is_lasting(error));
  }
  const std::string file = "/tmp/bulkhead-limit-" + std::to_string(::getpid());
  for (const char *limit : {"0\n", "10\n", ""}) {
    put_file(file, limit);
    CHECK(is_limited_to_zero(file.c_str()) == (*limit == '0'));
  }
  fs::remove(file);
  CHECK_FALSE(is_limited_to_zero(file.c_str()));
}

TEST_CASE("in mode require, a server that cannot be confined is not started") {
  World w([](SpawnOptions &options) {
    options.namespaces = false;
    options.require = true;
  });
  Running run(w, R"("command":"x")", {});
  CHECK(run.status == BH_E_UNSUPPORTED);
  CHECK(run.error == "command \"" TEST_CHILD
                     "\" of server \"weather\" is not started: isolation.mode is "
                     "\"require\", and this machine lacks parts of its sandbox: namespaces");
  Running off(w, R"("command":"x","sandbox":{"mode":"off"})", {"read:/etc/passwd"});
  CHECK(off.of("read:/etc/passwd") == "ok");
}

TEST_CASE("an unconfined server is an ordinary child process") {
  World w;
  Running run(w, R"("command":"x","sandbox":{"mode":"off"})",
              {"write:" + w.home + "/new", "read:" + w.home + "/.ssh/id_ed25519", "pid:2"});
  CHECK(run.of("write:" + w.home + "/new") == "ok");
  CHECK(run.of("read:" + w.home + "/.ssh/id_ed25519") == "ok");
  CHECK(run.of("pid:2") != "ok");
}
