#include "sandbox/start_folder.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "sandbox/cache_folder.hpp"

using namespace bulkhead;

namespace {

// `line` contains words separated by single spaces.
bool is_private(const std::string &line, const std::string &cwd = {}) {
  std::istringstream words(line);
  std::string command, word;
  std::vector<std::string> args;
  words >> command;
  while (words >> word) args.push_back(word);
  return starts_in_private_folder(command, args, cwd);
}

}  // namespace

TEST_CASE("a server that is run by package name starts in a private folder") {
  for (const char *line :
       {"npx -y @modelcontextprotocol/server-everything", "npx",
        "/usr/bin/npx -y server@latest stdio",
        "npx -y mcp-remote https://example.com/mcp --header Authorization:x/y",
        "npx -y @modelcontextprotocol/server-filesystem /home/u/code", "npx -p @scope/pkg -c run",
        "npx github:owner/name", "npx -y owner/name", "npm exec -y pkg", "npm x pkg",
        "pnpm dlx pkg", "pnpx pkg", "yarn dlx pkg", "bunx pkg", "bun x pkg",
        "uvx mcp-server-git --repository /home/u/code",
        "uvx --from git+https://github.com/a/b tool", "uv tool run mcp-server-time",
        "pipx run mcp-server-time", "python -m mcp_server", "python3.12 -m mcp.server --port 80",
        "python3 -u -m pkg", "python3 -Im pkg", "python3 -mpkg", "python3 -X dev -W error -m pkg",
        "pypy3 -m pkg",
        // Options, with and without values, before the subcommand
        "npm --silent exec pkg", "npm exec", "npm --registry https://r.example/ exec --yes -- pkg",
        "npm --loglevel=error x @scope/pkg", "npx --registry https://r.example/ owner/name",
        "npx -y -- pkg", "npx --yes --package owner/name tool", "pnpm --silent dlx pkg",
        "pnpm --package=@scope/pkg dlx tool", "pnpm --config.auto-install-peers=true dlx pkg",
        "yarn -q dlx -p @scope/pkg tool", "yarnpkg dlx pkg", "bun --silent x pkg", "bunx --bun pkg",
        "uv --quiet tool run pkg", "uv --color never tool --offline run --python 3.12 pkg",
        "uv -q run --with pkg tool", "uv run --no-project --with=mcp mcp run /home/u/server.py",
        "uv run --with pkg python -m pkg", "uvx --python 3.12 --with a --from b tool",
        "uvx -p 3.12 tool", "pipx --quiet run pkg",
        "pipx run --spec git+https://github.com/a/b tool", "deno run npm:pkg",
        "deno run -A --allow-net=example.com:443 npm:@scope/pkg stdio",
        "deno run --allow-env jsr:@scope/pkg", "deno run -A https://example.com/mod.ts",
        "deno --quiet run npm:pkg", "deno -A npm:pkg", "dnx Server.Of.Mine@1.0.0 --yes",
        "dotnet tool exec Server.Of.Mine",
        // Programs that start other programs
        "env npx pkg", "env FOO=bar BAR=./x /usr/bin/npx -y pkg",
        "/usr/bin/env -u NODE_OPTIONS -i PATH=/usr/bin npx pkg", "env -- npx pkg",
        "nice -n 5 uvx pkg", "timeout -k 5 60 npx pkg", "nohup env A=1 nice npx pkg",
        "corepack pnpm dlx pkg", "corepack yarn@4.1.0 dlx pkg", "corepack npx pkg",
        // Unknown programs that start other programs
        "ionice -c3 npx pkg", "taskset 1 npx --offline pkg", "xvfb-run -a npx pkg",
        "op run -- npx pkg", "/opt/bin/wrapper --level 3 env A=1 uvx pkg",
        "chrt -b 0 python3 -m pkg", "node /usr/lib/node_modules/npm/bin/npx-cli.js -y pkg",
        "/x/npm-cli.js exec pkg",
        "/usr/bin/node --no-warnings /usr/lib/node_modules/npm/bin/npm-cli.js x pkg",
        "node /opt/corepack/dist/corepack.js pnpm dlx pkg", "node /x/yarn.js dlx pkg", "sh -c npx",
        "bash -lc npx",
        // Builds of Python
        "python3.13t -m pkg", "python3-dbg -m pkg", "python3.12d -u -m pkg", "pypy3-c -m pkg",
        // Values that look like paths but are not paths
        "npx pkg -k c2VjcmV0/b64==", "npx -y pkg -m openai/gpt-4o", "uvx pkg -t a/b",
        "uvx pkg --zone=Europe/Berlin", "uvx mcp-server-time --local-timezone Europe/Berlin",
        "npx -y pkg Europe/Berlin", "npx -y pkg --model openai/gpt-4o",
        "npx -y pkg --api-key=ab/cd", "npx -y pkg --accept application/x-ndjson"}) {
    INFO(line);
    CHECK(is_private(line));
    CHECK_FALSE(is_private(line, "/home/u/code"));
  }
}

TEST_CASE("other servers, and servers with a relative path, keep the gateway's start folder") {
  for (const char *line : {"node server.js",
                           "node /opt/server.js",
                           "uv run server.py",
                           "uv tool install x",
                           "npm start",
                           "bun run x",
                           "pipx install x",
                           "python server.py",
                           "python3 -c print()",
                           "python3 -",
                           "python-config -m x",
                           "npx -y @modelcontextprotocol/server-filesystem .",
                           "npx -y @modelcontextprotocol/server-filesystem ./docs",
                           "npx -y server --root=../x",
                           "npx tsx src/index.ts",
                           "npx tsx index.ts",
                           "npx ./local",
                           "uvx --from ./pkg tool",
                           "uvx --from=. tool",
                           "uvx mcp-server-sqlite --db-path test.db",
                           "python -m pkg --config conf/a.toml",
                           "python -m pkg settings.json",
                           "npm --silent start",
                           "npm --prefix ./tool exec pkg",
                           "npm exec --prefix tools/x pkg",
                           "npm exec -w packages pkg",
                           "npm --silent exec ./local",
                           "npx --package=../local tool",
                           "npx file:../local",
                           "npx -y pkg --verbose src/data",
                           "npx -y pkg --db-path data/x",
                           "npx -y pkg --outputDir=a/b",
                           "npx -y pkg -d a/b",
                           "npx -y pkg a/b",
                           "npx -y pkg --name x.sqlite",
                           "pnpm exec tool",
                           "pnpm -r dlx pkg",
                           "pnpm",
                           "yarn tool",
                           "bun --silent run x",
                           "uv",
                           "uv --quiet tool",
                           "uv --quiet tool install x",
                           "uv run tool",
                           "uv run --with",
                           "uv run --with mcp mcp run server.py",
                           "uv run --with mcp python server.py",
                           "uv run --with mcp python /opt/server.py",
                           "uv run --with mcp /opt/server.py",
                           "uv run --with-editable . tool",
                           "uv run --with mcp --with-requirements ./r tool",
                           "pipx run server.py",
                           "pipx --quiet install x",
                           "deno run server.ts",
                           "deno run -A --config deno.json npm:pkg",
                           "deno run --allow-read=./data npm:pkg",
                           "deno task start",
                           "deno",
                           "dotnet run",
                           "env",
                           "env FOO=bar",
                           "env -C /home/u/code npx pkg",
                           "env --chdir=/home/u/code npx pkg",
                           "env node server.js",
                           "nice -n 5 node server.js",
                           "timeout 60",
                           "corepack enable",
                           "corepack pnpm start",
                           "ionice -c3 node server.js",
                           "ionice -c3 npx -y server-filesystem .",
                           "op run -- npm start",
                           "op run --env-file=.env -- npx pkg",
                           "wrapper ./settings npx pkg",
                           "node server.js npx pkg",
                           "node /opt/server.js --runner npx",
                           "python3.13t server.py",
                           "python3-config -m x",
                           "node npx-cli.js ./local",
                           "npx -y pkg -k ./b",
                           "npx -y pkg -k x.json"}) {
    INFO(line);
    CHECK_FALSE(is_private(line));
  }
}

TEST_CASE("the program of a server is determined by the arguments up to the package") {
  const auto program = [](const std::string &line) {
    std::istringstream words(line);
    std::string command, word, out;
    std::vector<std::string> args;
    words >> command;
    while (words >> word) args.push_back(word);
    const std::size_t count = arguments_of_program(command, args);
    REQUIRE(count <= args.size());
    for (std::size_t i = 0; i < count; ++i) out += (i == 0 ? "" : " ") + args[i];
    return out;
  };
  CHECK(program("npx -y pkg /home/u/code --x") == "-y pkg");
  CHECK(program("npx -y pkg .") == "-y pkg");
  CHECK(program("npx --registry https://r.example/ -y pkg x") ==
        "--registry https://r.example/ -y pkg");
  CHECK(program("npx -p pkg tool x") == "-p pkg tool");
  CHECK(program("npx") == "");
  CHECK(program("uv tool run --python 3.12 pkg x") == "tool run --python 3.12 pkg");
  CHECK(program("python3 -u -m pkg x") == "-u -m pkg");
  CHECK(program("env A=1 nice -n 5 npx pkg x") == "A=1 nice -n 5 npx pkg");
  CHECK(program("op run -- npx pkg x") == "run -- npx pkg");
  CHECK(program("ionice -c3 python3 -m pkg x") == "-c3 python3 -m pkg");
  // Commands that run no package
  for (const char *line :
       {"node /opt/server.js x", "sh -c run x", "npm start x", "python a.py x"}) {
    CHECK(program(line) == std::string(line).substr(std::string(line).find(' ') + 1));
  }
  CHECK(cache_key("npx", {"-y", "a"}).size() == 16);
  CHECK(cache_key("npx", {"-y", "a"}) == cache_key("npx", {"-y", "a", "/x"}));
  CHECK(cache_key("npx", {"-y", "a"}) != cache_key("npx", {"-y", "b"}));
  CHECK(cache_key("npx", {"-y", "a"}) != cache_key("/usr/bin/npx", {"-y", "a"}));
  CHECK(cache_key("x", {"ab", "c"}) != cache_key("x", {"a", "bc"}));
}

TEST_CASE("a private folder is emptied each time without following links") {
  char pattern[] = "/tmp/bulkhead-folder-XXXXXX";
  REQUIRE(::mkdtemp(pattern) != nullptr);
  const std::filesystem::path parent = pattern;
  CHECK(make_private_folder("", "cwd").empty());
  CHECK(make_private_folder(parent.string() + "/none", "cwd").empty());
  const std::filesystem::path made = make_private_folder(parent.string(), "cwd");
  CHECK(made == parent / "cwd");
  std::ofstream(made / "package.json") << "{}";
  std::filesystem::create_directories(made / "node_modules/.bin");
  CHECK(make_private_folder(parent.string(), "cwd") == made.string());
  CHECK(std::filesystem::is_empty(made));
  std::filesystem::create_directories(parent / "elsewhere/kept");
  std::filesystem::remove(made);
  std::filesystem::create_directory_symlink(parent / "elsewhere", made);
  CHECK(make_private_folder(parent.string(), "cwd") == made.string());
  CHECK_FALSE(std::filesystem::is_symlink(made));
  CHECK(std::filesystem::exists(parent / "elsewhere/kept"));
  std::filesystem::remove_all(parent);
}
