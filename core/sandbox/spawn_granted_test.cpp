// Tests which paths started children can use: those that a definition names, and private caches and
// start folders.
#include <thread>

#include "sandbox/cache_folder.hpp"
#include "sandbox/landlock.hpp"
#include "sandbox/spawn_world.hpp"

using namespace bulkhead;

TEST_CASE("a server may use the paths that its definition names") {
  if (skip_without_namespaces()) return;
  World w;
  put_file(w.folder + "/other/file");
  put_file(w.folder + "/extra/file");
  put_file(w.folder + "/seen/file");
  put_file(w.folder + "/job/file");
  const std::string definition =
      R"("command":"npx","args":["-y","server-filesystem",)" + in_quotes(w.project) + "," +
      in_quotes("--db=" + w.folder + "/other/new.db") + R"(],"env":{"CONFIG":)" +
      in_quotes(w.home + "/.aws/credentials") + R"(},"cwd":)" + in_quotes(w.folder + "/job") +
      R"(,"sandbox":{"read":[)" + in_quotes(w.folder + "/seen") + R"(],"write":[)" +
      in_quotes(w.folder + "/extra") + "]}";
  Running run(w, definition,
              {"read:" + w.project + "/data.txt", "write:" + w.project + "/data.txt",
               "write:" + w.project + "/new", "rename:" + w.project + "/new",
               "write:" + w.folder + "/other/new.db", "read:" + w.home + "/.aws/credentials",
               "read:" + w.home + "/.ssh/id_ed25519", "write:" + w.folder + "/extra/file",
               "read:" + w.folder + "/seen/file", "write:" + w.folder + "/seen/file",
               "cwd:" + w.folder + "/job", "write:" + w.folder + "/job/made",
               "read:" + w.folder + "/gateway.json"},
              {"PATH=/usr/bin:/bin"}, w.folder + "/job");
  CHECK(run.of("read:" + w.project + "/data.txt") == "ok");
  CHECK(run.of("write:" + w.project + "/data.txt") == "ok");
  CHECK(run.of("write:" + w.project + "/new") == "ok");
  CHECK(run.of("rename:" + w.project + "/new") == "ok");
  CHECK(run.of("write:" + w.folder + "/other/new.db") == "ok");
  CHECK(run.of("read:" + w.home + "/.aws/credentials") == "ok");  // the definition names this file
  CHECK(run.of("read:" + w.home + "/.ssh/id_ed25519") == "ENOENT");
  CHECK(run.of("write:" + w.folder + "/extra/file") == "ok");
  CHECK(run.of("read:" + w.folder + "/seen/file") == "ok");
  CHECK(run.of("write:" + w.folder + "/seen/file") == "EROFS");
  CHECK(run.of("cwd:" + w.folder + "/job") == "ok");
  CHECK(run.of("write:" + w.folder + "/job/made") == "ok");
  CHECK(run.of("read:" + w.folder + "/gateway.json") == "ENOENT");
  put_file(w.home + "/.ssh/id_rsa");
  CHECK(run.later("read:" + w.home + "/.ssh/id_rsa") == "ENOENT");
  put_file(w.home + "/.aws/config");
  CHECK(run.later("read:" + w.home + "/.aws/config") == "ENOENT");  // next to the named file
  put_file(w.project + "/later.txt");
  CHECK(run.later("read:" + w.project + "/later.txt") == "ok");
  CHECK(fs::exists(w.project + "/new2"));
  CHECK(fs::exists(w.folder + "/other/new.db"));
}

TEST_CASE("a granted file does not grant a folder that contains hidden paths") {
  const bool namespaces = GENERATE(true, false);
  if (namespaces ? skip_without_namespaces() : landlock_abi() == 0) return;
  World w([&](SpawnOptions &options) { options.namespaces = namespaces; });
  INFO((namespaces ? "" : "without namespaces"));
  const std::vector<std::string> alone = {".config/tool.json", ".config/autostart/tool.desktop",
                                          ".local/share/data.db", ".local/bin/data.db", "data.db"};
  const std::vector<std::string> around = {".config/tool/settings.json", "app/data.db",
                                           ".local/share/app/x.db"};
  std::string args = in_quotes(w.home + "/.config/not-there.json");
  std::vector<std::string> attempts = {"write:" + w.home + "/.config/not-there.json"};
  for (const auto *list : {&alone, &around}) {
    for (const std::string &name : *list) {
      put_file(w.home + "/" + name);
      args += "," + in_quotes(w.home + "/" + name);
      attempts.push_back("write:" + w.home + "/" + name);
      const fs::path folder = fs::path(w.home + "/" + name).parent_path();
      attempts.push_back("write:" + (folder / "planted").string());
    }
  }
  const auto place = [&](const std::string &name) {
    return "write:" + (fs::path(w.home + "/" + name).parent_path() / "planted").string();
  };
  Running run(w, R"("command":"server","args":[)" + args + "]", attempts);
  for (const std::string &name : alone) {
    CHECK(run.of("write:" + w.home + "/" + name) == "ok");
    CHECK(run.of(place(name)) != "ok");
  }
  for (const std::string &name : around) {
    CHECK(run.of("write:" + w.home + "/" + name) == "ok");
    CHECK(run.of(place(name)) == "ok");
  }
  CHECK(run.of("write:" + w.home + "/.config/not-there.json") != "ok");
  for (const char *name : {".config/gh/hosts.yml", ".local/share/keyrings/login"}) {
    put_file(w.home + "/" + name);
    CHECK(run.later("read:" + w.home + "/" + name) != "ok");
    CHECK(run.later("write:" + w.home + "/" + name) != "ok");
    CHECK(run.later(place(name)) != "ok");
  }
  const auto notes_with = [&](const std::string &text) {
    return std::count_if(w.log.begin(), w.log.end(), [&](const std::string &line) {
      return line.find(text) != std::string::npos;
    });
  };
  CHECK(notes_with(
            "not-there.json does not exist, and its folder was not made accessible instead") == 1);
  CHECK(notes_with("it can change the file " + w.home + "/.config/tool.json, but not replace it") ==
        1);
  CHECK(notes_with("/settings.json") == 0);
}

TEST_CASE("links that a server can create are not followed at its next start") {
  if (skip_without_namespaces()) return;
  World w;
  fs::create_directory_symlink(w.home + "/.ssh", w.project + "/keys");
  fs::create_directory_symlink(w.home, w.project + "/all");
  const std::string definition = R"("command":"x","args":[)" + in_quotes(w.project) + "," +
                                 in_quotes(w.project + "/keys") + "," +
                                 in_quotes(w.project + "/all") + "]";
  Running run(w, definition,
              {"read:" + w.project + "/keys/id_ed25519", "write:" + w.project + "/all/notes.txt",
               "read:" + w.home + "/.ssh/id_ed25519", "write:" + w.home + "/notes.txt"});
  for (const auto &[attempt, result] : run.results) {
    INFO(attempt);
    CHECK(result != "ok");
  }
  CHECK(run.results.size() == 4);
  CHECK(std::count_if(w.log.begin(), w.log.end(), [](const std::string &line) {
          return line.find(": access to a path is not granted: ") != std::string::npos;
        }) == 2);
}

TEST_CASE("a link in a folder for temporary files is followed only within that folder") {
  if (skip_without_namespaces()) return;
  World w;
  const std::string target = fs::path(TEST_CHILD).parent_path().string();
  for (const char *folder : {"/tmp", "/var/tmp", "/dev/shm"}) {
    if (!fs::is_directory(folder) || target.starts_with(folder)) continue;
    // Any program can create this link, even a server that was started without namespaces.
    const std::string link = folder + ("/bulkhead-link-" + std::to_string(::getpid()));
    fs::create_directory_symlink(target, link);
    w.log.clear();
    Running run(w, R"("command":"x","sandbox":{"write":[)" + in_quotes(link) + "]}",
                {"write:" + target + "/bulkhead-new"});
    fs::remove(link);
    INFO(link);
    CHECK(run.of("write:" + target + "/bulkhead-new") != "ok");
    CHECK(std::count_if(w.log.begin(), w.log.end(), [&](const std::string &line) {
            return line.find(link + " leads to " + target) != std::string::npos;
          }) == 1);
    fs::remove(target + "/bulkhead-new");
  }
}

TEST_CASE("a strict sandbox shows only the system, the program and granted paths") {
  if (skip_without_namespaces()) return;
  World w;
  const std::string definition =
      R"("command":"x","args":[)" + in_quotes(w.project) + R"(],"sandbox":{"mode":"strict"})";
  Running run(w, definition,
              {"read:" + w.home + "/notes.txt", "list:/var", "list:/usr", "list:/home",
               "read:" + w.project + "/data.txt", "write:" + w.project + "/data.txt",
               "read:/etc/passwd", "ptrace:1", "memory-of:1", "write:/tmp/x", "loopback"});
  CHECK(run.of("read:" + w.home + "/notes.txt") == "ENOENT");
  CHECK(run.of("list:/usr") == "ok");
  CHECK(run.of("list:/home") != "ok");
  CHECK(run.of("read:" + w.project + "/data.txt") == "ok");
  CHECK(run.of("write:" + w.project + "/data.txt") == "ok");
  CHECK(run.of("read:/etc/passwd") == "ok");
  put_file(w.home + "/.ssh/id_rsa");
  CHECK(run.later("read:" + w.home + "/.ssh/id_rsa") == "ENOENT");
  put_file(w.state + "/later");
  CHECK(run.later("read:" + w.state + "/later") == "ENOENT");
  CHECK(run.of("ptrace:1") == "EPERM");
  CHECK(run.of("memory-of:1") == "EPERM");
  CHECK(run.of("write:/tmp/x") == "ok");
  CHECK(run.of("loopback") == "ok");
}

TEST_CASE("a program is started through the user's links, and hidden paths beside it stay hidden") {
  if (skip_without_namespaces()) return;
  const std::string mode = GENERATE("home-read-only", "strict");
  World w([](SpawnOptions &options) {
    options.own.push_back(fs::path(options.home).parent_path().string() + "/data/mcp/gateway.json");
  });
  const std::string data = w.folder + "/data", seen = w.home + "/office/all";
  put_file(data + "/package.json");
  put_file(data + "/mcp/gateway.json");
  fs::create_directories(data + "/bin");
  fs::copy_file(TEST_CHILD, data + "/bin/run");
  fs::create_directories(w.home + "/office");
  fs::create_directory_symlink("../../data", seen);
  fs::create_directories(w.home + "/.bin");
  fs::create_symlink(seen + "/bin/run", w.home + "/.bin/run");
  Running run(w, R"("command":"x","sandbox":{"mode":")" + mode + "\"}",
              {"read:" + seen + "/package.json", "read:" + data + "/package.json",
               "read:" + w.home + "/.bin/run", "read:" + seen + "/mcp/gateway.json",
               "read:" + data + "/mcp/gateway.json"},
              {"PATH=/usr/bin:/bin"}, {}, w.home + "/.bin/run");
  INFO(mode << ": " << run.error);
  for (const auto &[attempt, result] : run.results) {
    INFO(attempt);
    CHECK((result == "ok") == !attempt.ends_with("/gateway.json"));
  }
  CHECK(run.results.size() == 5);
}

TEST_CASE("a server that is run by package name starts in an empty private folder") {
  const std::string kind = GENERATE("home-read-only", "strict", "off", "no namespaces");
  if (kind != "off" && kind != "no namespaces" && skip_without_namespaces()) return;
  if (kind == "no namespaces" && landlock_abi() == 0) return;
  World w([&](SpawnOptions &options) { options.namespaces = kind != "no namespaces"; });
  // left by an earlier process
  put_file(w.state + "/cache/weather/" + cache_key("npx", {"-y", "pkg"}) + "/cwd/package.json");
  const std::string sandbox =
      kind == "no namespaces" ? "" : R"(,"sandbox":{"mode":")" + kind + "\"}";
  const std::string started_in = "cwd:" + fs::current_path().string();
  for (const char *command :
       {R"("command":"npx","args":["-y","pkg"])", R"("command":"bunx","args":["pkg"])",
        R"("command":"uvx","args":["pkg"])", R"("command":"pipx","args":["run","pkg"])",
        R"("command":"/usr/bin/python3","args":["-m","pkg"])"}) {
    INFO(command << " " << kind);
    Running run(w, command + sandbox,
                {started_in, "cwd:/", "empty-cwd", "env:PYTHONSAFEPATH", "write:here"});
    CHECK(run.of(started_in) != "ok");
    CHECK(run.of("cwd:/") != "ok");
    CHECK(run.of("empty-cwd") == "ok");
    CHECK(run.of("env:PYTHONSAFEPATH") == "ok");
    CHECK(run.of("write:here") == "ok");
  }
  INFO((w.log.empty() ? "" : w.log[0]));
  CHECK(w.log.empty());
}

TEST_CASE("other servers start in the gateway's folder, which is logged once") {
  World w;
  const std::string here = "cwd:" + fs::current_path().string();
  const std::string off = R"(,"sandbox":{"mode":"off"})";
  for (const char *command : {R"("command":"npx","args":["-y","pkg","./files"])",
                              R"("command":"node","args":["a.js"])"}) {
    Running run(w, command + off, {here, "env:PYTHONSAFEPATH"});
    CHECK(run.of(here) == "ok");
    CHECK(run.of("env:PYTHONSAFEPATH") != "ok");
  }
  REQUIRE(w.log.size() == 1);
  CHECK(w.log[0].find("server \"weather\" starts in " + fs::current_path().string() +
                      ", the gateway's working directory") == 0);
  World given;
  Running run(given, R"("command":"npx","args":["-y","pkg"],"cwd":)" + in_quotes(w.project) + off,
              {"cwd:" + w.project}, {"PATH=/usr/bin:/bin"}, w.project);
  CHECK(run.of("cwd:" + w.project) == "ok");
  CHECK(given.log.empty());
}

TEST_CASE("a server's caches are private and persistent") {
  if (skip_without_namespaces()) return;
  World w;
  const std::string entry = w.home + "/.npm/_cacache/entry", mine = w.home + "/.npm/mine";
  {
    Running run(w, R"("command":"npx")", {"read:" + entry, "write:" + mine});
    CHECK(run.of("read:" + entry) == "ENOENT");
    CHECK(run.of("write:" + mine) == "ok");
  }
  CHECK_FALSE(fs::exists(mine));
  CHECK(fs::exists(w.state + "/cache/weather/" + cache_key("npx", {}) + "/npm/mine"));
  Running again(w, R"("command":"npx")", {"read:" + mine});
  CHECK(again.of("read:" + mine) == "ok");
}

TEST_CASE("a server does not see the caches of another program with the same server name") {
  const bool namespaces = GENERATE(true, false);
  if (namespaces ? skip_without_namespaces() : landlock_abi() == 0) return;
  World w([&](SpawnOptions &options) { options.namespaces = namespaces; });
  const auto entry = [&](const std::vector<std::string> &args) {
    return namespaces ? w.home + "/.npm/planted"
                      : w.state + "/cache/weather/" + cache_key("npx", args) + "/npm/planted";
  };
  const std::string planted = entry({"-y", "evil"});
  Running evil(w, R"("command":"npx","args":["-y","evil"])", {"write:" + planted});
  REQUIRE(evil.of("write:" + planted) == "ok");
  {
    Running again(w, R"("command":"npx","args":["-y","evil","--more"])", {"read:" + planted});
    CHECK(again.of("read:" + planted) == "ok");
  }
  // The first server is still running.
  for (const char *other : {R"("command":"npx","args":["-y","good"])",
                            R"("command":"/usr/bin/npx","args":["-y","evil"])",
                            R"("command":"node","args":["-y","evil"])"}) {
    INFO(other);
    Running run(w, other, {"read:" + planted});
    CHECK(run.of("read:" + planted) == (namespaces ? "ENOENT" : "EACCES"));
  }
}

TEST_CASE("a cache above its limit is emptied when the server starts again") {
  if (skip_without_namespaces()) return;
  World w([](SpawnOptions &options) { options.cache_settle = std::chrono::milliseconds(0); });
  if (w.reactor == nullptr) return;  // caches are monitored only in long-lived processes
  put_file(w.state + "/cache/weather/" + cache_key("npx", {}) + "/npm/large",
           std::string(2u << 20, 'x'));
  const std::string large = w.home + "/.npm/large", fresh = w.home + "/.npm/fresh";
  const std::string bounded = R"("command":"npx","sandbox":{"cache_bytes":1048576})";
  {
    Running run(w, bounded, {"read:" + large});
    CHECK(run.of("read:" + large) == "ok");
    const std::string mark = w.state + "/cache/.over-weather";
    for (int i = 0; i < 2'000 && !fs::exists(mark); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    REQUIRE(fs::exists(mark));
  }
  Running again(w, bounded, {"read:" + large, "write:" + fresh});
  CHECK(again.of("read:" + large) == "ENOENT");
  CHECK(again.of("write:" + fresh) == "ok");
}

TEST_CASE("a server in a cache folder starts and can read the named paths there") {
  World w;
  const std::string program = w.home + "/.cache/tool/bin/child";
  put_file(w.home + "/.cache/tool/lib/data.txt");
  put_file(w.home + "/.cache/other/data.txt");
  put_file(w.home + "/.cache/named/data.txt");
  fs::create_directories(w.home + "/.cache/tool/bin");
  fs::copy_file(TEST_CHILD, program);
  for (int start = 0; start < 2; ++start) {  // the second start uses cached look-ups
    Running run(
        w, R"("command":"x","args":[)" + in_quotes(w.home + "/.cache/named") + "]",
        {"read:" + w.home + "/.cache/tool/lib/data.txt",
         "write:" + w.home + "/.cache/tool/lib/data.txt",
         "read:" + w.home + "/.cache/other/data.txt", "write:" + w.home + "/.cache/named/data.txt"},
        {"PATH=/usr/bin:/bin"}, {}, program);
    INFO(run.error);
    REQUIRE(run.status == BH_OK);
    CHECK(run.of("read:" + w.home + "/.cache/tool/lib/data.txt") == "ok");
    CHECK(run.of("write:" + w.home + "/.cache/tool/lib/data.txt") != "ok");
    CHECK(run.of("read:" + w.home + "/.cache/other/data.txt") == "ENOENT");
    CHECK(run.of("write:" + w.home + "/.cache/named/data.txt") == "ok");
  }
}
