// Defines the arguments of `bulkhead mcp`, which lists and edits the servers in a profile.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace bulkhead::program {

struct McpArguments {
  std::vector<std::string> command;  // add: the program and its arguments
  std::string word;                  // add: the argument after the name (a URL)
  std::string url, cwd;              // add
  std::vector<std::string> env;      // add: "KEY=VALUE"
  std::vector<std::string> headers;  // add: "Name: value"
};

struct Arguments;
void add_mcp(CLI::App &app, Arguments &to);
// For `mcp add`, stores the arguments after "--" in *to and returns the number of arguments before
// "--". CLI11 must not parse the arguments after "--", because it would split an argument such as
// "[x]" into a list. Returns argc if there is no "--" or for other commands.
int read_program(int argc, const char *const *argv, McpArguments *to);

}  // namespace bulkhead::program
