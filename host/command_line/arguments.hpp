// The command line, parsed into plain values.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "command_line/mcp_arguments.hpp"
#include "command_line/record_arguments.hpp"

namespace bulkhead::program {

// Exit codes of every command.
enum ExitCode : int {
  exit_ok = 0,
  exit_failed = 1,
  exit_usage = 2,
  exit_not_running = 3,
  exit_in_part = 4  // reload: some of what the files say is in force, the rest needs a restart
};

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
  std::string config;                    // empty: the default file, else the builtin profile
  std::vector<std::string> plugin_dirs;  // empty: the program's own
  std::string log_level = "info";        // of the log file
  bool verbose = false;                  // standard error shows what the log file gets
  std::string listen;                    // serve
  bool single_process = false;           // serve, stdio
  std::string server;                    // tools, resources, prompts
  std::string name, call_arguments;      // call; mcp: a server's name
  std::string write_to;                  // import
  std::string policy_file;               // policy explain, policy test; "-": standard input
  std::string project;                   // a project file; empty: the one of the working folder
  bool no_project = false;               // none, whatever the working folder has
  std::vector<std::string> names;  // approve, revoke: servers; empty: all of the file; pins: tools
  std::string hash;                // approve, pins approve: only what has this digest
  bool yes = false, tools = false, list = false;  // approve
  bool all = false;                               // revoke, pins
  enum class Approvals : std::uint8_t { list, watch, allow, deny };
  Approvals approvals = Approvals::list;  // what of it
  std::string question;                   // approvals allow, deny: an id, or how one begins
  bool for_session = false;               // approvals allow
  std::uint32_t for_minutes = 0;          // approvals allow; 0: not given
  enum class Pins : std::uint8_t { list, show, approve, forget };
  Pins pins = Pins::list;                 // what of it; `server` and `names` (tools) say of which
  std::string codec = "auto", lock_path;  // aggregator
  int parent_pid = -1;                    // aggregator; -1: the parent process, 0: none
  bool no_warm = false;                   // import, mcp add: do not start the servers now
  bool folder = false;                    // import: also the files of the working folder
  bool force = false, json = false, origin = false;
  McpArguments mcp;         // mcp
  RecordArguments records;  // inspect, timeline, calls, audit verify
};

// What completion needs to know about a command.
struct CommandTree {
  struct Option {
    std::vector<std::string> names;  // "--config", "-c"
    bool takes_value = false, takes_file = false;
    std::vector<std::string> values;  // the allowed ones, if they are few
  };
  std::string name;
  std::vector<Option> options;
  std::vector<CommandTree> commands;
};

// The arguments, or the exit code when there is nothing left to do (--help and --version have been
// printed to standard output, a usage error to standard error).
std::variant<Arguments, int> parse_arguments(int argc, const char *const *argv);

CommandTree command_tree();

}  // namespace bulkhead::program
