// Tests which sockets of the host's services started children can connect to.
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <optional>

#include "sandbox/child_view.hpp"
#include "sandbox/hidden_places.hpp"
#include "sandbox/services.hpp"
#include "sandbox/spawn_world.hpp"

using namespace bulkhead;

namespace {

// A listening Unix socket. Its folder is created if it does not exist.
class Listener {
 public:
  explicit Listener(std::string path) : path_(std::move(path)) {
    fs::create_directories(fs::path(path_).parent_path());
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    REQUIRE(path_.size() < sizeof at.sun_path);
    std::copy(path_.begin(), path_.end(), at.sun_path);
    fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(::bind(fd_, reinterpret_cast<sockaddr *>(&at), sizeof at) == 0);
    REQUIRE(::listen(fd_, 64) == 0);
  }
  ~Listener() {
    ::close(fd_);
    ::unlink(path_.c_str());
  }
  Listener(const Listener &) = delete;
  Listener &operator=(const Listener &) = delete;
  std::string attempt() const { return "unix:" + path_; }

 private:
  std::string path_;
  int fd_ = -1;
};

// A variable of this process's environment, which is restored afterwards.
class Variable {
 public:
  Variable(const char *name, const std::string &value) : name_(name) {
    if (const char *before = std::getenv(name)) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }
  Variable(const Variable &) = delete;
  Variable &operator=(const Variable &) = delete;

 private:
  const char *name_;
  std::optional<std::string> before_;
};

}  // namespace

TEST_CASE("a server cannot connect to the sockets of engines and agents in the home folder") {
  if (skip_without_namespaces()) return;
  World w;
  const std::string mode = GENERATE("home-read-only", "strict");
  const bool network = GENERATE(true, false);
  INFO(mode << (network ? "" : ", without network"));
  std::vector<std::unique_ptr<Listener>> sockets;
  const auto listen = [&](const std::string &name) {
    return sockets.emplace_back(std::make_unique<Listener>(w.home + "/" + name))->attempt();
  };
  const std::string desktop = listen(".docker/desktop/docker.sock"),
                    rootless = listen(".docker/run/docker.sock"),
                    own_engine = listen("engine/engine.sock"), agent = listen("agents/agent.sock"),
                    bus = listen("buses/bus"), runtime = listen("runtime/any.sock"),
                    beside = listen("any.sock");
  std::vector<std::string> attempts = {desktop, rootless, own_engine, agent, bus, runtime, beside};
  for (const char *name :
       {".colima/default/docker.sock", ".rd/docker.sock", ".orbstack/run/docker.sock",
        ".lima/default/sock/docker.sock", ".local/share/containers/podman/machine/podman.sock",
        ".1password/agent.sock", ".bitwarden-ssh-agent.sock"}) {
    attempts.push_back(listen(name));
  }
  const Variable ssh("SSH_AUTH_SOCK", agent.substr(5)),
      dbus("DBUS_SESSION_BUS_ADDRESS", "unix:path=" + bus.substr(5) + ",guid=1"),
      folder("XDG_RUNTIME_DIR", w.home + "/runtime"),
      engine("DOCKER_HOST", "unix://" + own_engine.substr(5));
  const std::string limits =
      R"("mode":")" + mode + R"(","network":)" + (network ? "true" : "false");
  {
    Running run(w, R"("command":"x","sandbox":{)" + limits + "}", attempts);
    for (const std::string &attempt : attempts) {
      INFO(attempt);
      CHECK(run.of(attempt) == "ENOENT");
    }
  }
  {  // sockets that the definition names
    Running run(w,
                R"("command":"x","args":["--socket=)" + rootless.substr(5) + R"("],"sandbox":{)" +
                    limits + R"(,"read":[)" + in_quotes(desktop.substr(5)) + "," +
                    in_quotes(agent.substr(5)) + "," + in_quotes(w.home + "/runtime") + "," +
                    in_quotes(beside.substr(5)) + "]}",
                attempts);
    for (const std::string &attempt : attempts) {
      INFO(attempt);
      const bool named = attempt == desktop || attempt == rootless || attempt == agent ||
                         attempt == runtime || attempt == beside;
      CHECK(run.of(attempt) == (named ? "ok" : "ENOENT"));
    }
  }
  if (mode == "strict") return;
  // a client of a container engine
  Running run(w, R"("command":"/usr/bin/docker","sandbox":{)" + limits + "}", attempts);
  for (const std::string &attempt : {desktop, rootless, own_engine}) {
    INFO(attempt);
    CHECK(run.of(attempt) == "ok");
  }
  for (const std::string &attempt : {agent, bus, runtime, beside}) {
    INFO(attempt);
    CHECK(run.of(attempt) == "ENOENT");
  }
}

TEST_CASE("a server can connect to a socket in /run only if its definition names it") {
  if (skip_without_namespaces()) return;
  if (::access("/run", W_OK) != 0) return;  // only root can create sockets there
  World w;
  const std::string folder = "/run/bulkhead-spawn-test-" + std::to_string(::getpid());
  {
    const Listener daemon(folder + "/a/daemon.sock"), other(folder + "/b/daemon.sock"),
        user("/run/user/" + std::to_string(::getpid()) + "/bus");
    const std::string mode = GENERATE("home-read-only", "strict");
    const bool network = GENERATE(true, false);
    INFO(mode << (network ? "" : ", without network"));
    const auto with = [&](const std::string &paths) {
      return R"("sandbox":{"mode":")" + mode + R"(","network":)" + (network ? "true" : "false") +
             paths + "}";
    };
    const std::vector<std::string> attempts = {daemon.attempt(), other.attempt(), user.attempt()};
    const std::string at_a = in_quotes(folder + "/a/daemon.sock");
    const std::string runtime = in_quotes("/run/user/" + std::to_string(::getpid()));
    // Definitions, and whether they name the first socket.
    const std::map<std::string, bool> definitions = {
        {with(""), false},
        {with(R"(,"read":[)" + at_a + "]"), true},
        {R"("args":[)" + in_quotes(folder + "/a") + "]," + with(""), true},
        {R"("args":[)" + in_quotes("--at=/var" + folder + "/a/daemon.sock") + "]," + with(""),
         true},
        {R"("args":["/run","/run/user"],"env":{"XDG_RUNTIME_DIR":)" + runtime + "}," + with(""),
         false}};
    for (const auto &[definition, named] : definitions) {
      INFO(definition);
      Running run(w, R"("command":"x",)" + definition, attempts);
      CHECK(run.of(daemon.attempt()) == (named ? "ok" : "ENOENT"));
      CHECK(run.of(other.attempt()) == "ENOENT");
      CHECK(run.of(user.attempt()) == "ENOENT");
    }
  }
  fs::remove_all(folder);
  fs::remove("/run/user/" + std::to_string(::getpid()));
}

namespace {

// Makes a new root folder for this process, in which top-level folders can be created and /var is
// empty.
bool enter_new_root(const std::string &root) {
  const std::string user = std::to_string(::geteuid()), group = std::to_string(::getegid());
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  put_file("/proc/self/setgroups", "deny");
  put_file("/proc/self/uid_map", user + " " + user + " 1");
  put_file("/proc/self/gid_map", group + " " + group + " 1");
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  if (::mount("tmpfs", root.c_str(), "tmpfs", 0, nullptr) != 0) return false;
  for (const auto &entry : fs::directory_iterator("/")) {
    const std::string name = root + entry.path().string();
    const bool own = entry.path() == "/var" || entry.path() == "/nix";
    if (entry.is_symlink()) {
      fs::copy_symlink(entry.path(), name);
    } else if (entry.is_directory()) {
      fs::create_directory(name);
      const char *from = entry.path().c_str();
      if (!own && ::mount(from, name.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0)
        return false;
    }
  }
  // The old root is mounted on the new one, and then unmounted (pivot_root(2)).
  return ::chdir(root.c_str()) == 0 && ::syscall(SYS_pivot_root, ".", ".") == 0 &&
         ::umount2(".", MNT_DETACH) == 0 && ::chdir("/") == 0;
}

constexpr const char *package_daemons[] = {"/nix/var/nix/daemon-socket/socket",
                                           "/nix/var/determinate/determinate-nixd.socket",
                                           "/var/guix/daemon-socket/socket"};
constexpr const char *other_daemons[] = {"/var/lib/lxd/unix.socket",
                                         "/var/snap/multipass/common/multipass_socket",
                                         "/var/snap/microk8s/common/run/containerd.sock"};

// Returns the connection attempts that succeed, each with the sandbox mode and command of its
// server.
std::string reached_daemons() {
  std::string reached;
  std::vector<std::unique_ptr<Listener>> sockets;
  std::vector<std::string> attempts;
  for (const char *path : package_daemons) {
    attempts.push_back(sockets.emplace_back(std::make_unique<Listener>(path))->attempt());
  }
  for (const char *path : other_daemons) {
    attempts.push_back(sockets.emplace_back(std::make_unique<Listener>(path))->attempt());
  }
  World w;
  for (const std::string mode : {"home-read-only", "strict"}) {
    for (const std::string command : {"x", "/usr/bin/nix", "nix-shell", "guix", "named"}) {
      const std::string read = command == "named" ? in_quotes(package_daemons[0]) : "";
      Running run(w,
                  R"("command":")" + command + R"(","sandbox":{"network":false,"mode":")" + mode +
                      R"(","read":[)" + read + "]}",
                  attempts);
      if (run.results.size() != attempts.size()) reached += "not started: " + run.error;
      for (const auto &[attempt, result] : run.results) {
        if (result == "ok") reached += mode + " " + command + " " + attempt + "\n";
      }
    }
  }
  return reached;
}

}  // namespace

TEST_CASE("a server cannot connect to daemons of package managers and other daemons in /var") {
  if (skip_without_namespaces()) return;
  std::string root = "/tmp/bulkhead-root-XXXXXX";
  REQUIRE(::mkdtemp(root.data()) != nullptr);
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    std::string said = "no root";
    try {
      if (enter_new_root(root)) said = reached_daemons() + "end";
    } catch (const std::exception &e) {  // must not continue with the tests in this process
      said = e.what();
    }
    const bool sent = ::write(ends[1], said.data(), said.size()) > 0;
    ::_exit(sent ? 0 : 1);
  }
  ::close(ends[1]);
  std::string said(8192, '\0');
  said.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::read(ends[0], said.data(), 8192))));
  ::close(ends[0]);
  CHECK(::waitpid(child, nullptr, 0) == child);
  fs::remove(root);
  std::string expected;
  for (const std::string command : {"/usr/bin/nix", "nix-shell", "guix"}) {
    for (const std::string path : {package_daemons[1], package_daemons[0], package_daemons[2]}) {
      expected += "home-read-only " + command + " unix:" + path + "\n";
    }
  }
  for (const std::string mode : {"home-read-only", "strict"}) {
    expected += mode + " named unix:" + package_daemons[0] + "\n";
  }
  CHECK(said == expected + "end");
}

TEST_CASE("the environment names services that are hidden") {
  const Variable ssh("SSH_AUTH_SOCK", "relative"),
      bus("DBUS_SESSION_BUS_ADDRESS",
          "tcp:host=x,port=1;unix:abstract=/tmp/y;unix:guid=1,path=/run/a/bus;unix:path=/"
          "run/b"),
      folder("XDG_RUNTIME_DIR", "/run/user/7/"), docker("DOCKER_HOST", "unix:///run/d/../d.sock"),
      podman("CONTAINER_HOST", "ssh://host/run/podman.sock");
  ViewRequest request;
  find_services(&request);
  CHECK(request.services == std::vector<std::string>{"/run/user/7", "/run/a/bus", "/run/b"});
  CHECK(request.engines == std::vector<std::string>{"/run/d.sock"});
  ChildPolicy policy;
  const auto hides = [&](const std::string &path) {
    const auto hidden = services_hidden_from(policy, request);
    return std::find(hidden.begin(), hidden.end(), path) != hidden.end();
  };
  policy.command = "npx";
  CHECK((hides("/run/d.sock") && hides("/run/docker.sock") && hides("/run/b")));
  policy.command = "podman";
  CHECK_FALSE((hides("/run/d.sock") || hides("/run/docker.sock")));
  CHECK(hides("/run/b"));
}

TEST_CASE("the sockets of all container engines that the environment names are hidden") {
  const Variable docker("DOCKER_HOST", "unix:///home/u/docker.sock"),
      podman("CONTAINER_HOST", "unix:///home/u/podman.sock");
  ViewRequest request;
  find_services(&request);
  for (const bool client : {false, true}) {
    ChildPolicy policy;
    policy.command = client ? "docker" : "npx";
    const auto hidden = services_hidden_from(policy, request);
    const auto visible = services_visible_to(policy, request);
    for (const char *path : {"/home/u/docker.sock", "/home/u/podman.sock"}) {
      INFO(path << " " << policy.command);
      CHECK(std::count(hidden.begin(), hidden.end(), path) == (client ? 0 : 1));
      CHECK(std::count(visible.begin(), visible.end(), path) == (client ? 1 : 0));
    }
  }
}

TEST_CASE("a variable of the gateway cannot hide a system folder") {
  if (skip_without_namespaces()) return;
  for (const char *folder : {"/usr", "/etc", "/", "/usr/bin"}) {
    const Variable runtime("XDG_RUNTIME_DIR", folder);
    World w;
    INFO(folder);
    Running run(w, R"("command":"x")", {"list:/usr/bin", "list:/etc"});
    CHECK(run.of("list:/usr/bin") == "ok");
    CHECK(run.of("list:/etc") == "ok");
  }
}
