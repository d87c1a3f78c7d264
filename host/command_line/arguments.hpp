// Parses the command line.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "command_line/mcp_arguments.hpp"
#include "command_line/new_plugin_arguments.hpp"
#include "command_line/record_arguments.hpp"
#include "common/complain.hpp"

namespace bulkhead::program {

struct Arguments {
  int (*run)(const Arguments &arguments) = nullptr;  // runs the command and returns the exit code
  enum class Serves : std::uint8_t { nothing, http, stdio };
  Serves serves = Serves::nothing;  // the command: http for serve, stdio for stdio
  // If empty, the default file is used, or the builtin profile if that file does not exist.
  std::string config;
  std::vector<std::string> plugin_dirs;  // empty: the directory of the installed plugins
  std::string log_level = "info";        // level of the log file
  bool verbose = false;                  // also print log lines to standard error
  std::string listen;                    // serve
  bool single_process = false;           // serve, stdio
  // serve: do not listen on any address; serve only local clients (shared/local_clients.hpp)
  bool no_listen = false;
  bool own = false;    // stdio, tools, resources, prompts, call: do not use a running gateway
  std::string server;  // tools, resources, prompts, calls, pins
  // name: call; mcp, logs: the server's name; plugin new, swap, rollback: the plugin's
  std::string name, call_arguments;
  std::string write_to;     // import
  std::string plugin_file;  // plugin swap; empty: the file in the profile
  std::string policy_file;  // policy explain, policy test; "-": standard input
  std::string project;      // empty: the project file in the working directory
  bool no_project = false;  // ignore project files
  // approve, revoke: servers (empty: all in the file); warm: servers (empty: all); pins: tools
  std::vector<std::string> names;
  std::string hash;                               // approve, pins approve: the expected digest
  bool yes = false, tools = false, list = false;  // approve
  bool all = false;                               // revoke, pins, calls
  std::string question;      // approvals allow, deny, revoke: the request's ID or a prefix of it
  bool for_tool = false;     // approvals allow
  bool for_session = false;  // approvals allow
  std::uint32_t for_minutes = 0;          // approvals allow; 0 if not specified
  bool notify = false;                    // approvals watch
  std::string codec = "auto", lock_path;  // aggregator
  int parent_pid = -1;   // serve: -1 for none; aggregator: -1 for the parent process, 0 for none
  bool no_warm = false;  // import, mcp add: do not start the servers now
  bool folder = false;   // import: also import the files in the working directory
  bool force = false, json = false, origin = false;
  McpArguments mcp;               // mcp
  RecordArguments records;        // inspect, timeline, calls, audit verify, policy replay, logs
  NewPluginArguments new_plugin;  // plugin new
};

// A command with its options and subcommands, for completion.
struct CommandTree {
  struct Option {
    std::vector<std::string> names;  // for example "--config" and "-c"
    bool takes_value = false, takes_file = false;
    std::vector<std::string> values;  // the allowed values; empty if any value is allowed
  };
  std::string name;
  std::vector<Option> options;
  std::vector<CommandTree> commands;
};

// Returns the arguments, or an exit code if there is no command to run. --help and --version print
// to standard output, usage errors to standard error.
std::variant<Arguments, int> parse_arguments(int argc, const char *const *argv);

CommandTree command_tree();

}  // namespace bulkhead::program
