// Command line of `bulkhead mcp`, which edits the servers of a profile.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace bulkhead::program {

struct McpArguments {
  enum class What : std::uint8_t { list, add, remove };
  What what = What::list;
  std::vector<std::string> command;  // add: the program with its arguments
  std::string word;                  // add: what stands behind the name, a URL
  std::string url, cwd;              // add
  std::vector<std::string> env;      // add: "KEY=VALUE"
  std::vector<std::string> headers;  // add: "Name: value"
};

struct Arguments;
void add_mcp(CLI::App &app, Arguments &to);
// Takes the program that stands behind the -- of `mcp add`; what is left of argc is to be parsed.
// CLI11 would take an argument "[x]" in a list apart.
int read_program(int argc, const char *const *argv, McpArguments *to);
// Once the line is parsed.
void read_mcp(const CLI::App &app, McpArguments *to);

}  // namespace bulkhead::program
