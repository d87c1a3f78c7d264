#include "command_line/completion.hpp"
#include "command_line/commands.hpp"

#include <stdio.h>

#include <catch2/catch.hpp>
#include <cstdlib>

using namespace bulkhead::program;

namespace {

// Returns the completions that bash offers for the last of these words.
std::string complete(const std::string &words) {
  setenv("BULKHEAD_COMPLETION", bash_completion(command_tree()).c_str(), 1);
  const std::string script =
      "eval \"$BULKHEAD_COMPLETION\"; COMP_WORDS=(bulkhead " + words +
      "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _bulkhead 2>/dev/null; echo \"${COMPREPLY[*]}\"";
  setenv("BULKHEAD_SCRIPT", script.c_str(), 1);
  FILE *pipe = popen("bash -c \"$BULKHEAD_SCRIPT\"", "r");
  REQUIRE(pipe != nullptr);
  std::string out(4096, '\0');
  out.resize(fread(out.data(), 1, out.size(), pipe));
  REQUIRE(pclose(pipe) == 0);
  while (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

}  // namespace

TEST_CASE("bash completes commands, their options and values") {
  CHECK(complete("se") == "serve");
  CHECK(complete("p") == "prompts profile plugin pins policy");
  CHECK(complete("audit ''") == "verify --help");
  CHECK(complete("inspect --sc") == "--schema");
  CHECK(complete("calls --f") == "--follow --file");
  CHECK(complete("profile ''") == "show --help");
  CHECK(complete("profile show --o") == "--origin");
  CHECK(complete("plugin n") == "new");
  CHECK(complete("plugin new tools x --lang ''") == "c c++");
  CHECK(complete("serve --li") == "--listen");
  CHECK(complete("serve --log-level w") == "warn");
  CHECK(complete("call --server ''").find("--config") != std::string::npos);
  CHECK(complete("status --or").empty());
  CHECK(complete("tools --server x").empty());
}

TEST_CASE("all commands are listed") {
  const CommandTree tree = command_tree();
  std::string names;
  for (const auto &command : tree.commands) names += command.name + " ";
  CHECK(names ==
        "serve stdio tools resources prompts call warm approve revoke approvals aggregator relay "
        "status doctor reload import profile plugin mcp pins policy inspect timeline calls logs "
        "audit "
        "completion ");
}

TEST_CASE("arguments are parsed, and invalid arguments exit with code 2") {
  const char *serve[] = {"bulkhead", "serve",       "--single-process", "--config", "a.json",
                         "--listen", "127.0.0.1:0", "--plugin-dir",     "x",        "--plugin-dir",
                         "y"};
  auto parsed = parse_arguments(11, serve);
  REQUIRE(std::holds_alternative<Arguments>(parsed));
  const auto &arguments = std::get<Arguments>(parsed);
  CHECK(arguments.run == run_serve);
  CHECK(arguments.config == "a.json");
  CHECK(arguments.listen == "127.0.0.1:0");
  CHECK(arguments.single_process);
  CHECK(arguments.plugin_dirs == std::vector<std::string>{"x", "y"});

  const char *call[] = {"bulkhead", "call", "files__read", "{\"a\":1}", "--json"};
  parsed = parse_arguments(5, call);
  REQUIRE(std::holds_alternative<Arguments>(parsed));
  CHECK(std::get<Arguments>(parsed).name == "files__read");
  CHECK(std::get<Arguments>(parsed).call_arguments == "{\"a\":1}");
  CHECK(std::get<Arguments>(parsed).json);

  const char *unknown[] = {"bulkhead", "serv"};
  CHECK(std::get<int>(parse_arguments(2, unknown)) == exit_usage);
  const char *level[] = {"bulkhead", "serve", "--log-level", "loud"};
  CHECK(std::get<int>(parse_arguments(4, level)) == exit_usage);
  const char *none[] = {"bulkhead"};
  CHECK(std::get<int>(parse_arguments(1, none)) == exit_usage);
}

TEST_CASE("a profile's path is resolved once if it contains ..") {
  const char *words[] = {"bulkhead", "tools", "--config", "/proc/self/../p.toml"};
  auto parsed = parse_arguments(4, words);
  REQUIRE(std::holds_alternative<Arguments>(parsed));
  CHECK(std::get<Arguments>(parsed).config == "/proc/p.toml");
  words[3] = "x/p.toml";
  parsed = parse_arguments(4, words);
  CHECK(std::get<Arguments>(parsed).config == "x/p.toml");
}

TEST_CASE("an empty value is rejected") {
  for (const char *option : {"--config", "--project", "--hash", "--config="}) {
    INFO(option);
    std::vector<const char *> words = {"bulkhead", "approve", "--yes", option};
    if (!std::string_view(option).ends_with('=')) words.push_back("");
    const auto parsed = parse_arguments(static_cast<int>(words.size()), words.data());
    REQUIRE(std::holds_alternative<int>(parsed));
    CHECK(std::get<int>(parsed) == exit_usage);
  }
}
