// The command line of `bulkhead mcp`, which edits the servers of a profile.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace bulkhead::program {

struct McpArguments {
  std::vector<std::string> command;  // add: the program with its arguments
  std::string word;                  // add: the argument after the name, a URL
  std::string url, cwd;              // add
  std::vector<std::string> env;      // add: "KEY=VALUE"
  std::vector<std::string> headers;  // add: "Name: value"
};

struct Arguments;
void add_mcp(CLI::App &app, Arguments &to);
// Removes the program after -- in `mcp add` from the arguments and returns the new argc. CLI11
// would split an argument such as "[x]" into a list.
int read_program(int argc, const char *const *argv, McpArguments *to);

}  // namespace bulkhead::program
