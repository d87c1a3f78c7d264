// Tests the limits and the system calls of started children, and what they share with others.
#include <linux/seccomp.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "sandbox/child.hpp"
#include "sandbox/child_filter.hpp"
#include "sandbox/landlock.hpp"
#include "sandbox/spawn_world.hpp"

using namespace bulkhead;

TEST_CASE("a server's inotify instances are limited") {
  if (skip_without_namespaces()) return;
  struct statvfs info{};
  if (::statvfs("/proc/sys/user", &info) != 0 || (info.f_flag & ST_RDONLY) != 0) return;
  World w;
  const std::string mode = GENERATE("home-read-only", "strict");
  Running run(w, R"("command":"x","sandbox":{"mode":)" + in_quotes(mode) + "}",
              {"inotify:32", "inotify:33", "write:/proc/sys/user/max_inotify_instances"});
  CHECK(run.of("inotify:32") == "ok");
  CHECK(run.of("inotify:33") == "EMFILE");
  CHECK(run.of("write:/proc/sys/user/max_inotify_instances") != "ok");
}

TEST_CASE("a server's namespaces are limited") {
  if (skip_without_namespaces()) return;
  struct statvfs info{};
  if (::statvfs("/proc/sys/user", &info) != 0 || (info.f_flag & ST_RDONLY) != 0) return;
  World w;
  const std::string mode = GENERATE("home-read-only", "strict");
  INFO(mode);
  std::vector<std::string> limits, more;
  for (const char *kind : {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time"}) {
    const std::string file = "/proc/sys/user/max_" + std::string(kind) + "_namespaces";
    if (::access(file.c_str(), F_OK) != 0) continue;  // the kernel does not support this kind
    limits.push_back("holds-text:" + file + "=256");
    more.push_back("write:" + file);
  }
  std::vector<std::string> attempts = limits;
  attempts.insert(attempts.end(), more.begin(), more.end());
  // The sandbox itself has one namespace of each kind except `user`.
  const std::vector<std::string> few = {"hold-namespaces:user=20", "hold-namespaces:mnt=20"},
                                 many = {"hold-namespaces:user=257", "hold-namespaces:mnt=256"};
  attempts.insert(attempts.end(), few.begin(), few.end());
  attempts.insert(attempts.end(), many.begin(), many.end());
  Running run(w, R"("command":"x","sandbox":{"mode":)" + in_quotes(mode) + "}", attempts);
  for (const std::string &attempt : limits) CHECK(run.of(attempt) == "ok");
  for (const std::string &attempt : more) CHECK(run.of(attempt) != "ok");
  for (const std::string &attempt : few)
    CHECK(run.of(attempt) == (mode == "strict" ? "EPERM" : "ok"));
  for (const std::string &attempt : many) {
    INFO(attempt);
    CHECK(run.of(attempt) == (mode == "strict" ? "EPERM" : "ENOSPC"));
  }
}

TEST_CASE("a server can use a part of the user's signals, queues and terminals") {
  World w([](SpawnOptions &options) { options.namespaces = GENERATE(true, false); });
  std::vector<std::string> attempts;
  for (const auto which : {RLIMIT_SIGPENDING, RLIMIT_MSGQUEUE}) {
    rlimit limit{};
    REQUIRE(::getrlimit(which, &limit) == 0);
    if (limit.rlim_cur == RLIM_INFINITY) continue;
    attempts.push_back("has-limit:" + std::to_string(static_cast<int>(which)) + "=" +
                       std::to_string(limit.rlim_cur / 4));
  }
  const std::string mode = GENERATE("home-read-only", "strict");
  const std::string few = "hold-terminals:200", many = "hold-terminals:257";
  const std::string own = "pid:2";
  attempts.insert(attempts.end(), {own, few, many});
  Running run(w, R"("command":"x","sandbox":{"mode":)" + in_quotes(mode) + "}", attempts);
  if (run.of(own) == "ok") {  // with namespaces
    CHECK(run.of(few) == "ok");
    CHECK(run.of(many) == "ENOSPC");
  }
  for (const std::string &attempt : attempts) {
    if (attempt.starts_with("has-limit")) CHECK(run.of(attempt) == "ok");
  }
}

TEST_CASE("a server cannot copy mounts with any system call") {
  World w([](SpawnOptions &options) { options.namespaces = GENERATE(true, false); });
  Running run(w, R"("command":"x")", {"open-tree:428", "open-tree:467", "open-tree:1000"});
  CHECK(run.of("open-tree:428") == "EPERM");
  CHECK(run.of("open-tree:467") == "EPERM");  // open_tree_attr
  CHECK(run.of("open-tree:1000") == "ENOSYS");
}

TEST_CASE("the kernel rejects a malicious server's operations") {
  if (skip_without_namespaces()) return;
  World w;
  const std::string us = std::to_string(::getpid());
  const int abstract = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  const std::string name = "bulkhead-spawn-test-" + us;
  std::copy(name.begin(), name.end(), at.sun_path + 1);
  REQUIRE(::bind(abstract, reinterpret_cast<sockaddr *>(&at),
                 static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())) == 0);
  REQUIRE(::listen(abstract, 1) == 0);
  const std::vector<std::string> attempts = {"kill:" + us,
                                             "ptrace:" + us,
                                             "memory-of:" + us,
                                             "read:/proc/" + us + "/environ",
                                             "read:/proc/" + us + "/mem",
                                             "list:/proc/" + us + "/fd",
                                             "mount:/tmp",
                                             "umount:" + w.home,
                                             "new-namespace-umount:" + w.home,
                                             "io_uring",
                                             "bpf",
                                             "userfaultfd",
                                             "keyring",
                                             "setuid:0",
                                             "setuid:1",
                                             "read:/etc/shadow",
                                             "unix:@" + name,
                                             "ptrace:1",
                                             "memory-of:1",
                                             "read:/proc/1/mem",
                                             "read:/proc/1/environ",
                                             "write:/proc/sysrq-trigger",
                                             "write:/sys/kernel/uevent_helper",
                                             "forks:4000"};
  const bool root = ::geteuid() == 0;
  Running run(w, R"("command":"x","sandbox":{"processes":64,"memory_bytes":134217728})", attempts);
  // Only a control group can limit root's processes.
  const auto uncounted = [&] {
    const auto &missing = w.spawner->missing();
    return std::find(missing.begin(), missing.end(), "process-limit") != missing.end();
  };
  for (const std::string &attempt : attempts) {
    INFO(attempt);
    if (root && attempt == "setuid:0") continue;  // the id is already 0
    if (uncounted() && attempt.starts_with("forks")) continue;
    CHECK(run.of(attempt) != "ok");
  }
  ::close(abstract);
}

TEST_CASE("shared memory is limited by the scratch folder and by a control group") {
  World w([](SpawnOptions &options) { options.scratch_bytes = 32u << 20; });
  Running unbounded(w, R"("command":"x")", {"fill:/dev/shm/big"});
  CHECK(unbounded.of("fill:/dev/shm/big") == "ENOSPC");
  const auto &missing = w.spawner->missing();
  if (!ServerGroups().counts_memory() ||
      std::find(missing.begin(), missing.end(), "process-limit") != missing.end()) {
    WARN("SKIP cgroups: shared memory has no other limit here");
    return;
  }
  World large;
  Running bounded(large, R"("command":"x","sandbox":{"memory_bytes":67108864})",
                  {"fill:/dev/shm/big"});
  CHECK(bounded.reap().how == BH_CHILD_KILLED);
}

TEST_CASE("control groups count processes and are removed with their servers") {
  std::string name;
  {
    ServerGroups groups;
    if (!groups.counts_processes()) {
      WARN("SKIP cgroups: this user cannot create any");
      return;
    }
    const ServerGroups::Group first = groups.plan({8, 64u << 20}), second = groups.plan({8, 0});
    CHECK(first.name != second.name);
    const auto counting =
        std::find_if(first.parts.begin(), first.parts.end(),
                     [](const ServerGroups::Part &p) { return !p.processes_file.empty(); });
    REQUIRE(counting != first.parts.end());
    const ServerGroups::Part &part = *counting;
    // The target of the symbolic link is the path of the parent folder.
    name = fs::read_symlink("/proc/self/fd/" + std::to_string(part.parent)) / part.folder;
    CHECK_FALSE(fs::exists(name));
    const pid_t child = ::fork();
    if (child == 0) {
      ChildGroup group{part.parent, part.folder.c_str(), part.procs.c_str()};
      group.processes_file = part.processes_file.c_str();
      group.processes = part.processes.c_str();
      std::string own;
      const bool in = enter_group(group);
      std::ifstream file("/proc/self/cgroup");
      for (std::string line; std::getline(file, line);) own += line + "\n";
      ::_exit(in && own.find("/" + first.name + "\n") != std::string::npos ? 0 : 1);
    }
    int status = -1;
    CHECK(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    CHECK(fs::exists(name));
    groups.remove(first.name);
    CHECK_FALSE(fs::exists(name));
  }
  CHECK_FALSE(fs::exists(name));
  CHECK_FALSE(fs::exists(fs::path(name).parent_path()));
}

TEST_CASE("memory is limited to memory_bytes") {
  World w;
  Running run(w, R"("command":"x","sandbox":{"memory_bytes":67108864})",
              {"memory:32", "memory:128"});
  CHECK(run.of("memory:32") == "ok");
  CHECK(run.of("memory:128") == "ENOMEM");
}

TEST_CASE("a server without network access has only a private loopback interface") {
  if (skip_without_namespaces()) return;
  World w;
  const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  REQUIRE(::bind(server, reinterpret_cast<sockaddr *>(&at), size) == 0);
  REQUIRE(::listen(server, 8) == 0);
  REQUIRE(::getsockname(server, reinterpret_cast<sockaddr *>(&at), &size) == 0);
  const std::string tcp = "tcp:" + std::to_string(ntohs(at.sin_port));
  Running with(w, R"("command":"x")", {tcp, "loopback"});
  CHECK(with.of(tcp) == "ok");
  Running without(w, R"("command":"x","sandbox":{"network":false})", {tcp, "loopback"});
  CHECK(without.of(tcp) == "ECONNREFUSED");
  CHECK(without.of("loopback") == "ok");
  ::close(server);
}

namespace {

// A set of IPC objects whose names are derived from one key. make() creates them outside any
// sandbox, and the destructor removes them there.
struct KernelObjects {
  int key;
  std::string queue, file;
  explicit KernelObjects(int which)
      : key(0x43000000 + 4 * ::getpid() + which),
        queue("/bulkhead-" + std::to_string(key)),
        file("/dev/shm" + queue) {}
  ~KernelObjects() {
    ::shmctl(::shmget(key, 0, 0), IPC_RMID, nullptr);
    ::semctl(::semget(key, 0, 0), 0, IPC_RMID);
    ::msgctl(::msgget(key, 0), IPC_RMID, nullptr);
    ::mq_unlink(queue.c_str());
    ::unlink(file.c_str());
  }
  void make() const {
    REQUIRE(::shmget(key, 4096, IPC_CREAT | 0666) >= 0);
    REQUIRE(::semget(key, 1, IPC_CREAT | 0666) >= 0);
    REQUIRE(::msgget(key, IPC_CREAT | 0666) >= 0);
    const mqd_t made = ::mq_open(queue.c_str(), O_RDWR | O_CREAT, 0666, nullptr);
    REQUIRE(made != static_cast<mqd_t>(-1));
    ::mq_close(made);
    put_file(file);
  }
  std::vector<std::string> there() const {
    std::vector<std::string> out;
    if (::shmget(key, 0, 0) >= 0) out.emplace_back("shm");
    if (::semget(key, 0, 0) >= 0) out.emplace_back("sem");
    if (::msgget(key, 0) >= 0) out.emplace_back("msg");
    const mqd_t made = ::mq_open(queue.c_str(), O_RDONLY);
    if (made != static_cast<mqd_t>(-1)) {
      out.emplace_back("queue");
      ::mq_close(made);
    }
    if (fs::exists(file)) out.emplace_back("file");
    return out;
  }
  std::vector<std::string> attempts() const {
    const std::string number = std::to_string(key);
    return {"shm:" + number, "sem:" + number, "msg:" + number, "queue:" + queue, "read:" + file};
  }
};

std::string own_namespace(const std::string &name) {
  return "namespace:" + name + "=" + fs::read_symlink("/proc/self/ns/" + name).string();
}

}  // namespace

TEST_CASE("shared memory, semaphores and queues are private to a sandbox and removed with it") {
  if (skip_without_namespaces()) return;
  World w;
  const KernelObjects outside(0), inside(1);
  outside.make();
  const std::string mode =
      GENERATE(R"({"mode":"strict"})", R"({"mode":"home-read-only"})",
               R"({"mode":"strict","network":false})", R"({"ipc":"host"})", R"({"mode":"off"})");
  INFO(mode);
  const bool host = mode.find("host") != std::string::npos;
  const bool off = mode.find("off") != std::string::npos;
  std::vector<std::string> attempts = outside.attempts();
  const std::string sysv = "make-sysv:" + std::to_string(inside.key),
                    queue = "make-queue:" + inside.queue, file = "write:" + inside.file,
                    ipc = own_namespace("ipc"), uts = own_namespace("uts");
  attempts.insert(attempts.end(), {sysv, queue, file, ipc, uts});
  {
    Running run(w, R"("command":"x","sandbox":)" + mode, attempts);
    for (const std::string &attempt : outside.attempts()) {
      INFO(attempt);
      const bool kernel = !attempt.starts_with("read");
      CHECK(run.of(attempt) == (off || (host && kernel) ? "ok" : "ENOENT"));
    }
    for (const std::string &attempt : {sysv, queue, file}) CHECK(run.of(attempt) == "ok");
    CHECK((run.of(ipc) == "ok") == (!host && !off));
    CHECK((run.of(uts) == "ok") == !off);
    using Names = std::vector<std::string>;
    Names expected;
    if (off || host) expected = {"shm", "sem", "msg", "queue"};
    if (off) expected.emplace_back("file");
    CHECK(inside.there() == expected);
    CHECK(::kill(run.child.pid, SIGKILL) == 0);
    CHECK(run.wait_end());
    CHECK(inside.there() == expected);
  }
  CHECK(w.spawner->missing().empty());
}

namespace {

// Starts a server from a user namespace in which no namespace of this kind can be created, because
// the limit is zero or is reached. Returns the results of its attempts, the missing parts and the
// error. Returns an empty string if no user namespace is available.
std::string without_namespaces(const std::string &kind, bool require, bool reached = false) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const std::string user = std::to_string(::geteuid()), group = std::to_string(::getegid());
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWUSER) != 0) ::_exit(0);
    put_file("/proc/self/setgroups", "deny");
    put_file("/proc/self/uid_map", user + " " + user + " 1");
    put_file("/proc/self/gid_map", group + " " + group + " 1");
    put_file("/proc/sys/user/max_" + kind + "_namespaces", reached ? "1" : "0");
    if (reached && ::unshare(kind == "ipc" ? CLONE_NEWIPC : CLONE_NEWUTS) != 0) ::_exit(0);
    std::string said;
    {
      World w([&](SpawnOptions &options) { options.require = require; });
      Running run(w, R"("command":"x")", {"pid:2", "read:" + w.home + "/.netrc"});
      for (const auto &[attempt, result] : run.results) said += result + ", ";
      if (run.status == BH_OK) {
        w.spawner->kill(run.child.id, SIGKILL);
        run.reap();
      }
      for (const std::string &part : w.spawner->missing()) said += part + ", ";
      said += run.error;
    }
    const bool sent = ::write(ends[1], said.data(), said.size()) > 0;
    ::_exit(sent ? 0 : 1);
  }
  ::close(ends[1]);
  std::string said(4096, '\0');
  said.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::read(ends[0], said.data(), 4096))));
  ::close(ends[0]);
  CHECK(::waitpid(child, nullptr, 0) == child);
  return said;
}

}  // namespace

TEST_CASE("missing IPC or UTS namespaces are reported, and are an error only in mode require") {
  if (skip_without_namespaces()) return;
  const std::string kind = GENERATE("ipc", "uts");
  const std::string word = kind + "-namespace";
  const std::string started = without_namespaces(kind, false);
  INFO(started);
  CHECK(started.find("ok, ") == 0);
  CHECK(started.find(word + ", ") != std::string::npos);
  CHECK(started.find("namespaces, ") == std::string::npos);
  const std::string refused = without_namespaces(kind, true);
  INFO(refused);
  CHECK(refused.find("is not started: isolation.mode is \"require\", and this machine lacks parts "
                     "of its sandbox: ") != std::string::npos);
  CHECK(refused.find(word) != std::string::npos);
}

TEST_CASE("a server does not share IPC objects because too many namespaces exist") {
  if (skip_without_namespaces()) return;
  const std::string kind = GENERATE("ipc", "uts");
  const std::string refused = without_namespaces(kind, false, true);
  INFO(refused);
  CHECK(refused.find("cannot be started: No space left on device") != std::string::npos);
  CHECK(refused.find("ok, ") == std::string::npos);
  CHECK(refused.find(kind + "-namespace") == std::string::npos);
}

namespace {

std::string status_line(pid_t pid, const std::string &name) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name + ":")) return line.substr(name.size() + 1);
  }
  return {};
}

pid_t only_child_of(pid_t parent) {
  const std::string pid = std::to_string(parent);
  std::ifstream children("/proc/" + pid + "/task/" + pid + "/children");
  pid_t child = 0;
  children >> child;
  return child;
}

}  // namespace

TEST_CASE("a sandbox's first process has the server's filter and cannot be inspected") {
  const bool namespaces = GENERATE(true, false);
  const std::string mode = GENERATE("home-read-only", "strict");
  if (namespaces && skip_without_namespaces()) return;
  World w([&](SpawnOptions &options) { options.namespaces = namespaces; });
  INFO(mode << (namespaces ? "" : ", without namespaces"));
  // The server may run before the first process has executed child_init.c.
  Running run(w, R"("command":"x","sandbox":{"mode":")" + mode + "\"}",
              {"open:/proc/1/mem", "write:/dev/null"});
  if (namespaces && landlock_abi() > 0) CHECK(run.of("open:/proc/1/mem") == "EACCES");
  CHECK(run.of("write:/dev/null") == "ok");
  const pid_t server = only_child_of(run.child.pid);
  REQUIRE(server > 0);
  CHECK(status_line(run.child.pid, "Seccomp") == "\t2");
  CHECK(status_line(run.child.pid, "Seccomp_filters") == status_line(server, "Seccomp_filters"));
  CHECK(status_line(run.child.pid, "NoNewPrivs") == "\t1");
  CHECK(status_line(run.child.pid, "CapBnd") == status_line(server, "CapBnd"));
  const std::string first = namespaces ? "1" : std::to_string(run.child.pid);
  for (const std::string &attempt :
       {"open:/proc/" + first + "/mem", "open:/proc/" + first + "/environ",
        "open:/proc/" + first + "/fd/0", "ptrace:" + first, "read-memory-of:" + first}) {
    INFO(attempt);
    const std::string result = run.later(attempt);
    CHECK((result == "EPERM" || result == "EACCES"));
  }
}

TEST_CASE("without network access, only the listed socket families can be created") {
  if (skip_without_namespaces()) return;
  World w;
  const std::string mode = GENERATE("home-read-only", "strict");
  const auto families = "socket-families:+" + std::to_string(AF_UNIX) + "+" +
                        std::to_string(AF_INET) + "+" + std::to_string(AF_INET6) + "+" +
                        std::to_string(AF_NETLINK);
  Running run(w, R"("command":"x","sandbox":{"network":false,"mode":")" + mode + "\"}",
              {families, "loopback"});
  CHECK(run.of(families) == "ok");
  CHECK(run.of("loopback") == "ok");
}

namespace {

// Returns the error of socket() for each family, in a process that has only the filter of a server,
// without namespaces. 0: the socket was created. If `filter` is null, the process has no filter.
std::map<int, int> socket_errors(const std::vector<std::pair<int, int>> &families,
                                 const sock_fprog *filter) {
  int results[2];
  REQUIRE(::pipe2(results, O_CLOEXEC) == 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    const bool set =
        filter == nullptr || (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                              ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, filter) == 0);
    for (const auto &[family, type] : families) {
      const int error = !set ? -1 : ::socket(family, type | SOCK_CLOEXEC, 0) >= 0 ? 0 : errno;
      if (::write(results[1], &error, sizeof error) != sizeof error) ::_exit(1);
    }
    ::_exit(0);
  }
  ::close(results[1]);
  std::map<int, int> out;
  for (const auto &[family, type] : families) {
    int error = -1;
    CHECK(::read(results[0], &error, sizeof error) == sizeof error);
    out[family] = error;
  }
  ::close(results[0]);
  ::waitpid(pid, nullptr, 0);
  return out;
}

}  // namespace

TEST_CASE("the filter of a server without network access allows only the listed socket families") {
  const bool strict = GENERATE(false, true);
  const std::map<int, int> errors = socket_errors({{AF_UNIX, SOCK_STREAM},
                                                   {AF_INET, SOCK_STREAM},
                                                   {AF_INET6, SOCK_DGRAM},
                                                   {AF_NETLINK, SOCK_RAW},
                                                   {AF_VSOCK, SOCK_STREAM},
                                                   {AF_PACKET, SOCK_DGRAM},
                                                   {AF_ALG, SOCK_SEQPACKET},
                                                   {AF_KEY, SOCK_RAW},
                                                   {AF_BLUETOOTH, SOCK_RAW}},
                                                  &child_filter(strict, false));
  for (const int family : {AF_UNIX, AF_INET, AF_NETLINK}) {
    INFO("family " << family);
    CHECK(errors.at(family) == 0);
  }
  // The kernel may have been started without IPv6.
  if (::access("/proc/net/if_inet6", F_OK) == 0) CHECK(errors.at(AF_INET6) == 0);
  for (const int family : {AF_VSOCK, AF_PACKET, AF_ALG, AF_KEY, AF_BLUETOOTH}) {
    INFO("family " << family);
    CHECK(errors.at(family) == EAFNOSUPPORT);
  }
  // Without the filter, the result is different: root may create such a socket, others get EPERM.
  // A server with network access has the same families.
  const std::vector<std::pair<int, int>> packets = {{AF_PACKET, SOCK_DGRAM}};
  const int unfiltered = socket_errors(packets, nullptr).at(AF_PACKET);
  CHECK((unfiltered == 0 || unfiltered == EPERM));
  CHECK(socket_errors(packets, &child_filter(strict, true)).at(AF_PACKET) == unfiltered);
}

TEST_CASE("without namespaces, a server without network access is not started") {
  const std::string mode = GENERATE("home-read-only", "strict");
  World w([](SpawnOptions &options) { options.namespaces = false; });
  Running run(w, R"("command":"x","sandbox":{"network":false,"mode":")" + mode + "\"}",
              {"write:/dev/null"});
  CHECK(run.status == BH_E_UNSUPPORTED);
  CHECK(run.error.find("its network access cannot be blocked") != std::string::npos);
  CHECK(run.results.empty());
}
