// Tests which paths are hidden from started children, at the start and after it.

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <optional>
#include <set>

#include "sandbox/cache_folder.hpp"
#include "sandbox/child_view.hpp"
#include "sandbox/hidden_places.hpp"
#include "sandbox/landlock.hpp"
#include "sandbox/services.hpp"
#include "sandbox/spawn_world.hpp"

using namespace bulkhead;

namespace {

// Creates credentials in hidden places after the start: in a folder that existed at the start, in a
// new one, and in a new one below a folder that existed. Returns those that the server can read.
std::vector<std::string> readable_later(const World &w, Running &run) {
  std::vector<std::string> out;
  fs::remove_all(w.home + "/.aws");
  for (const char *place : {"/.aws/credentials", "/.kube/config", "/.config/gh/hosts.yml"}) {
    put_file(w.home + place);
    if (run.later("read:" + w.home + place) == "ok") out.emplace_back(place);
  }
  return out;
}

}  // namespace

TEST_CASE(
    "by default the home folder is readable, secrets are hidden, and nothing can be changed") {
  if (skip_without_namespaces()) return;
  World w;
  Running run(w, R"("command":"server")",
              {"read:" + w.home + "/notes.txt",
               "write:" + w.home + "/notes.txt",
               "write:" + w.home + "/new",
               "read:" + w.home + "/.ssh/id_ed25519",
               "list:" + w.home + "/.ssh",
               "write:" + w.home + "/.ssh/x",
               "read:" + w.home + "/.aws/credentials",
               "read:" + w.home + "/.netrc",
               "list:" + w.home + "/.config/bulkhead",
               "list:" + w.state,
               "read:" + w.state + "/secrets/x/token",
               "read:/etc/passwd",
               "write:/etc/passwd",
               "write:/usr/x",
               "write:/tmp/x",
               "read:/tmp/x",
               "chmod:" + w.home + "/notes.txt",
               "rename:" + w.home + "/notes.txt",
               "write:/dev/null",
               "read:/dev/urandom",
               "write:/dev/shm/x",
               "write:/proc/self/comm",
               "write:/proc/sys/kernel/core_pattern",
               "read:/dev/mem",
               "list:/sys"});
  CHECK(run.of("read:" + w.home + "/notes.txt") == "ok");
  CHECK(run.of("write:" + w.home + "/notes.txt") == "EROFS");
  CHECK(run.of("write:" + w.home + "/new") == "EROFS");
  CHECK(run.of("read:" + w.home + "/.ssh/id_ed25519") == "ENOENT");
  CHECK(run.of("list:" + w.home + "/.ssh") == "ENOENT");
  CHECK(run.of("write:" + w.home + "/.ssh/x") == "ENOENT");
  CHECK(run.of("read:" + w.home + "/.aws/credentials") == "ENOENT");
  CHECK(run.of("read:" + w.home + "/.netrc") == "ENOENT");
  CHECK(run.of("list:" + w.home + "/.config/bulkhead") == "ENOENT");
  CHECK(run.of("list:" + w.state) == "ENOENT");
  CHECK(run.of("read:" + w.state + "/secrets/x/token") == "ENOENT");
  CHECK(run.of("read:/etc/passwd") == "ok");
  CHECK(run.of("write:/etc/passwd") != "ok");
  CHECK(run.of("write:/usr/x") != "ok");
  CHECK(run.of("write:/tmp/x") == "ok");
  CHECK(run.of("read:/tmp/x") == "ok");
  CHECK(run.of("chmod:" + w.home + "/notes.txt") == "EROFS");
  CHECK(run.of("rename:" + w.home + "/notes.txt") == "EROFS");
  CHECK(run.of("write:/dev/null") == "ok");
  CHECK(run.of("read:/dev/urandom") == "ok");
  CHECK(run.of("write:/dev/shm/x") == "ok");
  CHECK(run.of("write:/proc/sys/kernel/core_pattern") != "ok");
  CHECK(run.of("read:/dev/mem") == "ENOENT");
  CHECK(run.of("list:/sys") == "ok");
  CHECK_FALSE(fs::exists("/tmp/x"));
  CHECK(w.spawner->missing().empty());
  CHECK(readable_later(w, run).empty());
}

namespace {

// Replaces a file by renaming a new file over it, as an editor does.
void replace_file(const std::string &path, const std::string &text = "new") {
  put_file(path + ".new", text);
  fs::rename(path + ".new", path);
}

std::vector<std::string> all_below(const std::string &folder) {
  std::vector<std::string> out;
  for (const auto &entry : fs::recursive_directory_iterator(folder)) out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

TEST_CASE("credentials created or replaced after the start are not visible") {
  const bool namespaces = GENERATE(true, false);
  const std::string home_has = GENERATE("nothing", "the folders", "other files in them");
  if (namespaces ? skip_without_namespaces() : landlock_abi() == 0) return;
  World w([&](SpawnOptions &options) { options.namespaces = namespaces; });
  INFO(home_has << (namespaces ? "" : ", without namespaces"));
  put_file(w.home + "/project/old.txt");
  for (const std::string_view secret : secrets_at_home()) {
    const fs::path path = w.home + "/" + std::string(secret);
    if (home_has == "nothing") fs::remove_all(path);
    if (home_has != "nothing") fs::create_directories(path.parent_path());
    if (home_has == "other files in them") put_file(path.parent_path() / "other.txt");
  }
  Running run(w, R"("command":"server")", {"read:" + w.home + "/project/old.txt"});
  CHECK(run.of("read:" + w.home + "/project/old.txt") == "ok");
  for (const std::string_view secret : secrets_at_home()) {
    const std::string path = w.home + "/" + std::string(secret);
    INFO(path);
    // Tests each path once as a file and once as a folder.
    fs::remove_all(path);
    put_file(path);
    CHECK(run.later("read:" + path) != "ok");
    replace_file(path);
    CHECK(run.later("read:" + path) != "ok");
    fs::remove(path);
    put_file(path + "/id_rsa");
    CHECK(run.later("read:" + path + "/id_rsa") != "ok");
    CHECK(run.later("list:" + path) != "ok");
    if (home_has == "other files in them" && namespaces) {
      const std::string other = (fs::path(path).parent_path() / "other.txt").string();
      const bool cache = path.starts_with(w.home + "/.cache");
      const bool inside = other.find("/.claude/") != std::string::npos;
      if (!cache && !inside) CHECK(run.later("read:" + other) == "ok");
    }
  }
  if (namespaces) CHECK(run.later("chmod:" + w.home + "/project/old.txt") == "EROFS");
  put_file(w.home + "/later.txt");
  // This is a documented limitation: the new file is not visible until the server is started again.
  CHECK(run.later("read:" + w.home + "/later.txt") != "ok");
  put_file(w.home + "/project/later.txt");
  CHECK(run.later("read:" + w.home + "/project/later.txt") == "ok");
  Running again(w, R"("command":"server")", {"read:" + w.home + "/later.txt"});
  CHECK(again.of("read:" + w.home + "/later.txt") == "ok");
}

TEST_CASE("a credential stays hidden after another file replaces it") {
  if (skip_without_namespaces()) return;
  World w;
  const std::string shown = w.home + "/dotfiles/npmrc";
  put_file(shown);
  fs::create_symlink(shown, w.home + "/.npmrc");
  put_file(w.home + "/dotfiles/other");
  fs::create_symlink("dotfiles/other", w.home + "/other");
  const std::vector<std::string> secrets = {w.home + "/.netrc",
                                            w.home + "/.aws/credentials",
                                            w.home + "/.ssh/id_ed25519",
                                            w.home + "/.config/bulkhead/profile.toml",
                                            w.state + "/secrets/x/token",
                                            w.home + "/.npmrc",
                                            shown};
  std::vector<std::string> attempts{"read:" + w.home + "/other"};
  for (const std::string &path : secrets) attempts.push_back("read:" + path);
  Running run(w, R"("command":"server")", attempts);
  CHECK(run.of("read:" + w.home + "/other") == "ok");  // readable through the symbolic link
  for (const std::string &path : secrets) {
    INFO(path);
    CHECK(run.of("read:" + path) == "ENOENT");
    replace_file(path);
    CHECK(run.later("read:" + path) == "ENOENT");
    if (fs::path(path).parent_path() == w.home) continue;
    fs::remove_all(fs::path(path).parent_path());
    put_file(path);
    CHECK(run.later("read:" + path) == "ENOENT");
  }
}

TEST_CASE("a start mounts its caches in the home folder and creates nothing there") {
  if (skip_without_namespaces()) return;
  const std::string command = GENERATE("npx", "uvx", "bunx", "pipx", "server");
  World w;
  fs::remove_all(w.home + "/.npm");
  fs::create_directories(w.home + "/.local/share/uv");
  // The start would otherwise create this folder.
  put_file(w.state + "/cache/weather/" + cache_key(command, {}) + "/mark");
  const auto own = [&](const std::string &path) { return path.starts_with(w.state); };
  std::vector<std::string> before = all_below(w.home);
  const std::vector<std::string> places = {"/.npm/x", "/.cache/x", "/.local/share/uv/tools/x",
                                           "/.bun/install/cache/x", "/.mcp-auth/x"};
  std::vector<std::string> attempts;
  for (const std::string &place : places) attempts.push_back("write:" + w.home + place);
  Running run(w, R"("command":")" + command + "\"", attempts);
  for (const std::string &attempt : attempts) {
    INFO(attempt);
    CHECK(run.of(attempt) == "ok");
  }
  std::vector<std::string> after = all_below(w.home);
  std::erase_if(before, own);
  std::erase_if(after, own);
  CHECK(after == before);
}

TEST_CASE("a completely granted home folder is bound as a single mount") {
  if (skip_without_namespaces()) return;
  World w;
  const std::string mode = GENERATE("home-read-only", "strict");
  const std::string definition = GENERATE(as<std::string>{}, R"("args":["@"])",
                                          R"("args":["--root=@"])", R"("sandbox":{"write":["@"]})");
  std::string text = definition;
  text.replace(text.find('@'), 1, w.home);
  text = text.find("\"sandbox\"") == text.npos
             ? text + R"(,"sandbox":{"mode":")" + mode + "\"}"
             : text.insert(text.size() - 1, R"(,"mode":")" + mode + '"');
  Running run(w, R"("command":"server",)" + text,
              {"write:" + w.home + "/new", "read:" + w.home + "/.ssh/id_ed25519",
               "read:" + w.home + "/.netrc", "read:" + w.home + "/notes.txt"});
  CHECK(run.of("write:" + w.home + "/new") == "ok");
  CHECK(run.of("read:" + w.home + "/notes.txt") == "ok");
  CHECK(run.of("read:" + w.home + "/.ssh/id_ed25519") != "ok");
  CHECK(run.of("read:" + w.home + "/.netrc") != "ok");
  put_file(w.home + "/.ssh/id_rsa");
  CHECK(run.later("read:" + w.home + "/.ssh/id_rsa") != "ok");  // the folder existed at the start
  put_file(w.home + "/later.txt");
  CHECK(run.later("read:" + w.home + "/later.txt") == "ok");
  // This is a documented limitation: in a named folder, places that are created or replaced after
  // the start are visible until the server is started again (docs/hidden-places.md).
  const std::vector<std::string> places = {"/.aws/credentials", "/.kube/config",
                                           "/.config/gh/hosts.yml"};
  CHECK(readable_later(w, run) == places);
  // The next start hides them, although paths are looked up only once for several starts.
  std::vector<std::string> attempts{"read:" + w.home + "/later.txt"};
  for (const std::string &place : places) attempts.push_back("read:" + w.home + place);
  Running again(w, R"("command":"server",)" + text, attempts);
  CHECK(again.of("read:" + w.home + "/later.txt") == "ok");
  for (const std::string &place : places) {
    INFO(place);
    CHECK(again.of("read:" + w.home + place) != "ok");
  }
}

TEST_CASE("a variable whose value is the home folder grants nothing") {
  if (skip_without_namespaces()) return;
  World w;
  Running run(w, R"("command":"server","env":{"HOME":)" + in_quotes(w.home) + "}",
              {"write:" + w.home + "/new", "read:" + w.home + "/notes.txt"});
  CHECK(run.of("write:" + w.home + "/new") == "EROFS");
  CHECK(run.of("read:" + w.home + "/notes.txt") == "ok");
  CHECK(readable_later(w, run).empty());
}

TEST_CASE("a home folder with too many entries is logged, and the same paths are hidden in it") {
  if (skip_without_namespaces()) return;
  World w;
  for (int i = 0; i < 4'200; ++i) put_file(w.home + "/many-" + std::to_string(i));
  Running run(w, R"("command":"server")", {"read:" + w.home + "/.netrc", "list:" + w.home});
  CHECK(run.of("read:" + w.home + "/.netrc") == "ENOENT");
  CHECK(run.of("list:" + w.home) == "ok");
  REQUIRE(w.log.size() == 2);  // the other line names the working directory
  CHECK(w.log[0].find(w.home + " has more than 4096 entries; ") != std::string::npos);
  CHECK(readable_later(w, run).empty());
}

TEST_CASE(
    "only listed paths and links in /run are visible, and other service folders are mirrored") {
  ChildPolicy policy;
  policy.command = "server";
  ViewRequest request;
  request.policy = &policy;
  request.program = "/bin/sh";
  request.user = 1000;
  request.own = {"/usr/share/bulkhead-that-is-not-there/profile.toml"};
  const ChildView view = plan_view(request);
  const auto kind_at = [&](const std::string &path) -> std::optional<ViewStep::Kind> {
    for (const ViewStep &step : view.steps)
      if (step.path == path) return step.kind;
    return std::nullopt;
  };
  CHECK(kind_at(real_path("/run")) == ViewStep::Kind::empty_folder);
  for (const bool network : {true, false}) {
    policy.network = network;
    std::set<std::string> listed;
    for (const std::string &path : services_visible_to(policy, request)) listed.insert(path);
    CHECK(listed.contains("/run/nscd/socket") == network);
    for (const char *path : {"/etc/resolv.conf", "/etc/hosts", "/etc/localtime"}) {
      listed.insert(real_path(path));
    }
    for (const ViewStep &step : plan_view(request).steps) {
      if (!step.path.starts_with("/run/")) continue;
      INFO(step.path << (network ? "" : ", without network"));
      CHECK((step.kind == ViewStep::Kind::link || listed.contains(step.path)));
    }
  }
  for (const auto &entry : fs::directory_iterator("/run")) {
    const bool visible = kind_at(entry.path()) == ViewStep::Kind::link;
    CHECK(visible == entry.is_symlink());
  }
  CHECK(kind_at("/usr/share") == ViewStep::Kind::mirror);
  for (const char *service : {"/run/dbus", "/run/docker.sock", "/run/podman", "/run/user/1000"}) {
    CHECK_FALSE(kind_at(service).has_value());
  }
  policy.command = "docker";
  const ChildView docker = plan_view(request);
  const bool there = fs::exists("/run/docker.sock");
  CHECK(std::any_of(docker.steps.begin(), docker.steps.end(),
                    [](const ViewStep &step) { return step.path == "/run/docker.sock"; }) == there);
}

TEST_CASE("credentials are hidden in the account's, the gateway's and the server's home folders") {
  ChildPolicy policy;
  policy.command = "server";
  World w;
  const auto make_home = [&](const std::string &name) {
    put_file(w.folder + "/" + name + "/.ssh/id_rsa");
    put_file(w.folder + "/" + name + "/.config/x");
    return w.folder + "/" + name;
  };
  const std::string account = make_home("account"), gateway = make_home("gateway"),
                    own = make_home("own");
  policy.home = own;
  policy.env_values = {own, account};
  policy.mode = GENERATE(ChildPolicy::Mode::home_read_only, ChildPolicy::Mode::strict);
  ViewRequest request;
  request.policy = &policy;
  request.program = "/bin/sh";
  request.home = gateway;
  request.homes = {account, gateway};
  request.user = 1000;
  const ChildView view = plan_view(request);
  const auto is = [&](const std::string &path, ViewStep::Kind kind) {
    return std::any_of(view.steps.begin(), view.steps.end(), [&](const ViewStep &step) {
      return step.path == path && step.kind == kind;
    });
  };
  CHECK(is(own, ViewStep::Kind::bind));  // the server's own home directory is granted
  CHECK(is(own + "/.ssh", ViewStep::Kind::empty_folder));
  CHECK_FALSE(is(account, ViewStep::Kind::bind));
  for (const std::string &home : {account, gateway}) {
    if (policy.mode == ChildPolicy::Mode::strict) continue;  // /tmp is not shown
    CHECK(is(home, ViewStep::Kind::mirror));
    CHECK(is(home + "/.config", ViewStep::Kind::mirror));
    CHECK_FALSE(is(home + "/.ssh", ViewStep::Kind::entry));
  }
}

TEST_CASE("the gateway's own files stay hidden from every server") {
  if (skip_without_namespaces()) return;
  World w;
  const std::string definition = R"("command":"x","args":[)" + in_quotes(w.folder) + "," +
                                 in_quotes(w.state) + "," + in_quotes(w.folder + "/gateway.json") +
                                 R"(],"sandbox":{"write":[)" + in_quotes(w.home) + "," +
                                 in_quotes(w.state + "/secrets") + "," +
                                 in_quotes(w.home + "/.config/bulkhead/profile.toml") + "]}";
  Running run(
      w, definition,
      {"write:" + w.home + "/new", "read:" + w.state + "/secrets/x/token",
       "read:" + w.home + "/.config/bulkhead/profile.toml", "read:" + w.folder + "/gateway.json",
       "write:" + w.folder + "/gateway.json", "read:" + w.home + "/.ssh/id_ed25519"});
  CHECK(run.of("write:" + w.home + "/new") == "ok");
  CHECK(run.of("read:" + w.state + "/secrets/x/token") == "ENOENT");
  CHECK(run.of("read:" + w.home + "/.config/bulkhead/profile.toml") == "ENOENT");
  CHECK(run.of("read:" + w.folder + "/gateway.json") != "ok");
  CHECK(run.of("read:" + w.home + "/.ssh/id_ed25519") == "ENOENT");
  put_file(w.state + "/secrets/later");
  CHECK(run.later("read:" + w.state + "/secrets/later") == "ENOENT");
  put_file(w.home + "/.config/bulkhead/later.toml");
  CHECK(run.later("read:" + w.home + "/.config/bulkhead/later.toml") == "ENOENT");
  std::string text;
  std::ifstream(w.folder + "/gateway.json") >> text;
  CHECK(text == "text");
}

TEST_CASE("a file that replaces the gateway's file stays hidden in a read-only folder") {
  if (skip_without_namespaces()) return;
  const std::string mode = GENERATE("strict", "home-read-only");
  World w([](SpawnOptions &options) {
    const std::string profile = fs::path(options.home).parent_path() / "project/gateway.json";
    put_file(profile);
    options.own.push_back(profile);
  });
  const std::string profile = w.project + "/gateway.json";
  Running run(
      w,
      R"("command":"x","sandbox":{"mode":")" + mode + R"(","read":[)" + in_quotes(w.project) + "]}",
      {"read:" + w.project + "/data.txt", "read:" + profile});
  CHECK(run.of("read:" + w.project + "/data.txt") == "ok");
  CHECK(run.of("read:" + profile) == "ENOENT");
  replace_file(profile);
  CHECK(run.later("read:" + profile) == "ENOENT");
}

TEST_CASE("a credential stays hidden if the gateway may not search its folder") {
  if (skip_without_namespaces() || ::geteuid() == 0) return;  // see spawn_test_ordinary_user
  World w;
  const std::string folder = w.home + "/.config/git", secret = folder + "/credentials";
  put_file(secret);
  ::chmod(folder.c_str(), 0);
  const std::string named = GENERATE("/.config", "/.config/git", "/notes.txt");
  Running run(w, R"("command":"x","sandbox":{"write":[)" + in_quotes(w.home + named) + "]}",
              {"read:" + secret, "read:" + w.home + "/notes.txt"});
  CHECK(run.of("read:" + secret) == "ENOENT");
  CHECK(run.of("read:" + w.home + "/notes.txt") == "ok");
  ::chmod(folder.c_str(), 0700);
  CHECK(run.later("read:" + secret) == "ENOENT");
}

// A FUSE file system that only user 12345 may use; even root may not. No process serves it.
class ForeignFuse {
 public:
  explicit ForeignFuse(const std::string &at)
      : at_(at), fd_(::open("/dev/fuse", O_RDWR | O_CLOEXEC)) {
    fs::create_directories(at);
    const std::string options =
        "fd=" + std::to_string(fd_) + ",rootmode=40000,user_id=12345,group_id=12345";
    mounted = fd_ >= 0 && ::mount("fuse", at.c_str(), "fuse", 0, options.c_str()) == 0;
  }
  ~ForeignFuse() {
    if (mounted) ::umount2(at_.c_str(), MNT_DETACH);
    if (fd_ >= 0) ::close(fd_);
    ::rmdir(at_.c_str());
  }
  ForeignFuse(const ForeignFuse &) = delete;
  ForeignFuse &operator=(const ForeignFuse &) = delete;
  bool mounted = false;

 private:
  const std::string at_;
  const int fd_;
};

TEST_CASE("another user's FUSE file system is hidden and does not stop servers from starting") {
  if (skip_without_namespaces() || ::geteuid() != 0) return;  // only root may mount
  World w;
  const std::string top = "/bulkhead-fuse-" + std::to_string(::getpid());
  const ForeignFuse secret(w.home + "/.gnupg"), other(top);
  if (!secret.mounted || !other.mounted) {
    WARN("skipped: this kernel has no FUSE");
    return;
  }
  struct stat info{};
  REQUIRE(::stat(top.c_str(), &info) != 0);
  REQUIRE(errno == EACCES);
  const std::string mode = GENERATE("home-read-only", "strict");
  Running run(w, R"("command":"server","sandbox":{"mode":")" + mode + "\"}",
              {"list:" + w.home + "/.gnupg", "read:" + top + "/file"});
  CHECK(run.of("list:" + w.home + "/.gnupg") == "ENOENT");
  CHECK(readable_later(w, run).empty());
  CHECK(run.of("read:" + top + "/file") == (mode == "strict" ? "ENOENT" : "EACCES"));
}

TEST_CASE("without namespaces Landlock hides secrets and rejects writes") {
  if (landlock_abi() == 0) return;
  World w([](SpawnOptions &options) { options.namespaces = false; });
  Running run(w, R"("command":"npx","args":[)" + in_quotes(w.project) + "]",
              {"read:" + w.home + "/notes.txt", "write:" + w.home + "/notes.txt",
               "read:" + w.home + "/.ssh/id_ed25519", "read:" + w.home + "/.aws/credentials",
               "read:" + w.state + "/secrets/x/token", "write:" + w.project + "/data.txt",
               "write:/etc/x", "env:npm_config_cache", "io_uring", "write:/dev/null"});
  CHECK(run.of("read:" + w.home + "/notes.txt") == "ok");
  CHECK(run.of("write:" + w.home + "/notes.txt") == "EACCES");
  CHECK(run.of("read:" + w.home + "/.ssh/id_ed25519") == "EACCES");
  CHECK(run.of("read:" + w.home + "/.aws/credentials") == "EACCES");
  CHECK(run.of("read:" + w.state + "/secrets/x/token") == "EACCES");
  CHECK(run.of("write:" + w.project + "/data.txt") == "ok");
  CHECK(run.of("write:/etc/x") == "EACCES");
  CHECK(run.of("env:npm_config_cache") == "ok");
  CHECK(run.of("io_uring") == "EPERM");
  CHECK(run.of("write:/dev/null") == "ok");
  CHECK(readable_later(w, run).empty());
  put_file(w.state + "/secrets/later");
  CHECK(run.later("read:" + w.state + "/secrets/later") == "EACCES");
}

TEST_CASE("without namespaces, /tmp is not granted if it contains a hidden path") {
  if (landlock_abi() == 0) return;
  const std::string mode = GENERATE("home-read-only", "strict");
  World w([](SpawnOptions &options) { options.namespaces = false; });
  REQUIRE(w.home.starts_with("/tmp/"));
  Running run(
      w,
      R"("command":"x","args":[)" + in_quotes(w.project) + R"(],"sandbox":{"mode":")" + mode +
          "\"}",
      {"read:" + w.home + "/.ssh/id_ed25519", "write:" + w.home + "/.ssh/id_ed25519",
       "read:" + w.home + "/.netrc", "write:" + w.home + "/.bashrc",
       "write:" + w.home + "/notes.txt", "read:" + w.home + "/notes.txt",
       "list:" + w.home + "/.ssh", "read:" + w.state + "/secrets/x/token",
       "read:" + w.folder + "/gateway.json", "write:" + w.folder + "/gateway.json",
       "rename:" + w.home, "rename:" + w.folder, "write:" + w.project + "/data.txt", "env:TMPDIR"});
  for (const auto &[attempt, result] : run.results) {
    const bool may = attempt.starts_with("write:" + w.project) || attempt == "env:TMPDIR" ||
                     (mode == "home-read-only" && attempt == "read:" + w.home + "/notes.txt");
    INFO(mode + " " + attempt);
    CHECK((result == "ok") == may);
  }
  CHECK(run.results.size() == 14);
  CHECK(readable_later(w, run).empty());
}

TEST_CASE("a server cannot rename the parents of hidden paths in a granted folder") {
  const bool namespaces = GENERATE(true, false);
  const std::string mode = GENERATE("home-read-only", "strict");
  if (namespaces ? skip_without_namespaces() : landlock_abi() == 0) return;
  const std::string away = "/projects/a/mcp";
  World w([&](SpawnOptions &options) {
    options.namespaces = namespaces;
    options.own.push_back(options.home + away + "/gateway.json");
  });
  INFO(mode << (namespaces ? "" : ", without namespaces"));
  const std::string projects = w.home + "/projects", config = w.home + "/.config";
  put_file(w.home + away + "/gateway.json");
  put_file(w.home + away + "/other.json");
  put_file(projects + "/b/data");
  put_file(config + "/git/credentials");
  put_file(config + "/Code/User/mcp.json");
  Running run(w,
              R"("command":"x","args":[)" + in_quotes(projects) + "," + in_quotes(config) +
                  R"(],"sandbox":{"mode":")" + mode + "\"}",
              {"rename:" + w.home + away, "rename:" + projects + "/a",
               "rename:" + w.home + away + "/gateway.json", "rename:" + config + "/git",
               "rename:" + config + "/Code/User", "rename:" + config + "/Code",
               "read:" + w.home + away + "/gateway.json", "read:" + config + "/git/credentials",
               "read:" + w.home + away + "/other.json", "write:" + projects + "/b/data"});
  for (const auto &[attempt, result] : run.results) {
    INFO(attempt);
    const bool may = attempt == "read:" + w.home + away + "/other.json" ||
                     attempt == "write:" + projects + "/b/data";
    CHECK((result == "ok") == may);
  }
  CHECK(run.results.size() == 10);
  replace_file(w.home + away + "/gateway.json");
  CHECK(run.later("read:" + w.home + away + "/gateway.json") != "ok");
  CHECK(run.later("write:" + w.home + away + "/gateway.json") != "ok");
}
