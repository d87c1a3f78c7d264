// Shared by the tests of started children: a temporary home directory, and a child that makes
// attempts and reports their results (sandbox_test_child.cpp). The tests run as the current user
// and, if that user is root, also as an ordinary user. If BULKHEAD_SPAWN_WAITS is set in the
// environment, spawn() blocks until the start completes; otherwise, starts complete asynchronously.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bulkhead/cpp/basics.hpp"
#include "reactor/reactor.hpp"
#include "sandbox/spawn.hpp"

namespace bulkhead {

namespace fs = std::filesystem;

inline void put_file(const std::string &path, const std::string &text = "text") {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path) << text;
}

inline std::string in_quotes(const std::string &text) {
  return "\"" + text + "\"";
}

// A temporary home directory with secrets, a project, and the gateway's folders.
struct World {
  std::string folder, home, project, state;
  std::vector<std::string> log;
  std::unique_ptr<Reactor> reactor;  // null: spawn() blocks
  std::unique_ptr<Spawner> spawner;

  explicit World(const std::function<void(SpawnOptions &)> &change = {}) {
    char name[] = "/tmp/bulkhead-spawn-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    ::chmod(name, 0755);
    folder = name;
    home = folder + "/home";
    project = folder + "/project";
    state = home + "/.local/state/bulkhead";
    put_file(home + "/.ssh/id_ed25519");
    put_file(home + "/.aws/credentials");
    put_file(home + "/.netrc");
    put_file(home + "/notes.txt");
    put_file(home + "/.config/bulkhead/profile.toml");
    put_file(home + "/.npm/_cacache/entry");
    put_file(project + "/data.txt");
    put_file(state + "/secrets/x/token");
    SpawnOptions options;
    options.home = home;
    options.state_dir = state;
    options.own = {home + "/.config/bulkhead", folder + "/gateway.json"};
    put_file(folder + "/gateway.json");
    options.log = [this](std::int32_t, std::string_view text) { log.emplace_back(text); };
    if (std::getenv("BULKHEAD_SPAWN_WAITS") == nullptr) {
      reactor = std::move(*Reactor::create());
      options.reactor = reactor.get();
    }
    if (change) change(options);
    spawner = std::make_unique<Spawner>(std::move(options));
  }
  ~World() {
    spawner.reset();
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }
};

struct Running {
  World &world;
  bh_child child{};
  bh_status status = BH_OK;
  std::string error;
  std::map<std::string, std::string> results;

  // `definition` contains the members of a JSON object, without the braces.
  Running(World &w, const std::string &definition, std::vector<std::string> attempts,
          const std::vector<std::string> &environment = {"PATH=/usr/bin:/bin"},
          const std::string &cwd = {}, const std::string &program = TEST_CHILD)
      : world(w) {
    attempts.insert(attempts.begin(), program);
    std::vector<bh_str> argv, env;
    for (const std::string &text : attempts) argv.push_back(bh::str(text));
    for (const std::string &text : environment) env.push_back(bh::str(text));
    const std::string json = "{" + definition + "}";
    bh_spawn request{};
    request.size = sizeof request;
    request.server = bh::str("weather");
    request.definition = bh::str(json);
    request.program = bh::str(program);
    request.argv = argv.data();
    request.argc = static_cast<std::uint32_t>(argv.size());
    request.env = env.data();
    request.envc = static_cast<std::uint32_t>(env.size());
    request.cwd = bh::str(cwd);
    child.size = sizeof child;
    bh_error why = bh::make_error();
    status = w.spawner->spawn(request, &child, &why);
    error = bh::text(why);
    if (status == BH_OK) read_results(attempts.size() - 1);
  }
  ~Running() {
    if (status != BH_OK) return;
    world.spawner->kill(child.id, SIGKILL);
    wait_end();
    bh_child_end end{};
    end.size = sizeof end;
    world.spawner->reap(child.id, &end);
    for (const int fd : {child.in, child.out, child.err, child.pidfd}) ::close(fd);
  }

  void read_results(std::size_t count) {
    std::string text;
    char buffer[4096];
    pollfd ready{child.out, POLLIN, 0};
    while (static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) < count) {
      if (::poll(&ready, 1, 20'000) != 1) break;
      const ssize_t n = ::read(child.out, buffer, sizeof buffer);
      if (n <= 0) break;
      text.append(buffer, static_cast<std::size_t>(n));
    }
    while (!text.empty()) {
      const std::string line = text.substr(0, text.find('\n'));
      text.erase(0, line.size() + 1);
      const std::size_t space = line.rfind(' ');
      results[line.substr(0, space)] = line.substr(space + 1);
    }
  }
  // Asks the running child to make another attempt, and returns the result.
  const std::string &later(const std::string &attempt) {
    const std::string line = attempt + "\n";
    REQUIRE(::write(child.in, line.data(), line.size()) == static_cast<ssize_t>(line.size()));
    results.erase(attempt);
    read_results(1);
    return of(attempt);
  }
  bool wait_end() {
    pollfd ready{child.pidfd, POLLIN, 0};
    return ::poll(&ready, 1, 20'000) == 1;
  }
  bh_child_end reap() {
    bh_error why = bh::make_error();
    bh_child_end end{};
    end.size = sizeof end;
    end.why = &why;
    REQUIRE(wait_end());
    REQUIRE(world.spawner->reap(child.id, &end) == BH_OK);
    error = bh::text(why);
    return end;
  }
  const std::string &of(const std::string &attempt) {
    INFO(attempt + ": " + error);
    REQUIRE(results.contains(attempt));
    return results[attempt];
  }
};

inline bool has_namespaces() {
  World world;
  Running run(world, "", {"pid:2"});
  return run.status == BH_OK && run.results["pid:2"] == "ok";
}

inline bool skip_without_namespaces() {
  if (has_namespaces()) return false;
  WARN("SKIP: this machine has no user namespaces");
  return true;
}

}  // namespace bulkhead
