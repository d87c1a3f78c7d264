// The command line, parsed into plain values.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "command_line/mcp_arguments.hpp"
#include "command_line/record_arguments.hpp"
#include "common/complain.hpp"

namespace bulkhead::program {

enum class Command : std::uint8_t {
  serve,
  stdio,
  tools,
  resources,
  prompts,
  call,
  warm,
  status,
  doctor,
  aggregator,
  reload,
  import_configs,
  mcp,
  approve,
  revoke,
  approvals,
  pins,
  profile_show,
  plugin_list,
  policy_check,
  policy_explain,
  policy_test,
  policy_replay,
  inspect,
  timeline,
  calls,
  audit_verify,
  relay,
  completion
};

struct Arguments {
  Command command = Command::serve;
  std::string config;                    // empty: the default file, otherwise the builtin profile
  std::vector<std::string> plugin_dirs;  // empty: the folder of this program
  std::string log_level = "info";        // of the log file
  bool verbose = false;                  // also print log lines to standard error
  std::string listen;                    // serve
  bool single_process = false;           // serve, stdio
  std::string server;                    // tools, resources, prompts
  std::string name, call_arguments;      // call; mcp: a server's name
  std::string write_to;                  // import
  std::string policy_file;               // policy explain, policy test; "-": standard input
  std::string project;                   // a project file; empty: that of the working folder
  bool no_project = false;               // ignore project files
  std::vector<std::string> names;  // approve, revoke: servers, empty: all of the file; pins: tools
  std::string hash;                // approve, pins approve: the expected digest
  bool yes = false, tools = false, list = false;  // approve
  bool all = false;                               // revoke, pins
  enum class Approvals : std::uint8_t { list, watch, allow, deny };
  Approvals approvals = Approvals::list;  // the subcommand
  std::string question;                   // approvals allow, deny: an id or its prefix
  bool for_session = false;               // approvals allow
  std::uint32_t for_minutes = 0;          // approvals allow; 0: not given
  bool notify = false;                    // approvals watch
  enum class Pins : std::uint8_t { list, show, approve, forget };
  // The subcommand; `server` and `names` (tools) select the pins.
  Pins pins = Pins::list;
  std::string codec = "auto", lock_path;  // aggregator
  int parent_pid = -1;                    // aggregator; -1: the parent process, 0: none
  bool no_warm = false;                   // import, mcp add: do not start the servers now
  bool folder = false;                    // import: include the files of the working folder
  bool force = false, json = false, origin = false;
  McpArguments mcp;         // mcp
  RecordArguments records;  // inspect, timeline, calls, audit verify
};

// The description of a command that completion uses.
struct CommandTree {
  struct Option {
    std::vector<std::string> names;  // "--config", "-c"
    bool takes_value = false, takes_file = false;
    std::vector<std::string> values;  // the allowed values, if there are few
  };
  std::string name;
  std::vector<Option> options;
  std::vector<CommandTree> commands;
};

// Returns the arguments, or the exit code if nothing is left to do (--help and --version are
// printed to standard output, usage errors to standard error).
std::variant<Arguments, int> parse_arguments(int argc, const char *const *argv);

CommandTree command_tree();

}  // namespace bulkhead::program
