#include "sandbox/start_folder.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace bulkhead;

namespace {

// Words with single spaces between them.
bool is_private(const std::string &line, const std::string &cwd = {}) {
  std::istringstream words(line);
  std::string command, word;
  std::vector<std::string> args;
  words >> command;
  while (words >> word) args.push_back(word);
  return starts_in_private_folder(command, args, cwd);
}

}  // namespace

TEST_CASE("a package that is run by its name starts in a private folder") {
  for (const char *line : {"npx -y @modelcontextprotocol/server-everything",
                           "npx",
                           "/usr/bin/npx -y server@latest stdio",
                           "npx -y mcp-remote https://example.com/mcp --header Authorization:x/y",
                           "npx -y @modelcontextprotocol/server-filesystem /home/u/work",
                           "npx -p @scope/pkg -c run",
                           "npx github:owner/name",
                           "npx -y owner/name",
                           "npm exec -y pkg",
                           "npm x pkg",
                           "pnpm dlx pkg",
                           "pnpx pkg",
                           "yarn dlx pkg",
                           "bunx pkg",
                           "bun x pkg",
                           "uvx mcp-server-git --repository /home/u/work",
                           "uvx --from git+https://github.com/a/b tool",
                           "uv tool run mcp-server-time",
                           "pipx run mcp-server-time",
                           "python -m mcp_server",
                           "python3.12 -m mcp.server --port 80",
                           "python3 -u -m pkg",
                           "python3 -Im pkg",
                           "python3 -mpkg",
                           "python3 -X dev -W error -m pkg",
                           "pypy3 -m pkg"}) {
    INFO(line);
    CHECK(is_private(line));
    CHECK_FALSE(is_private(line, "/home/u/work"));
  }
}

TEST_CASE(
    "what is given a relative path, or is no package by its name, stays where it was started") {
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
                           "python -m pkg settings.json"}) {
    INFO(line);
    CHECK_FALSE(is_private(line));
  }
}

TEST_CASE("a private folder is empty each time, and no link is followed") {
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
