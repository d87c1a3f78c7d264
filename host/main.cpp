// The program `bulkhead`: one command, one exit code.
#include <malloc.h>

#include <exception>
#include <string>

#include "command_line/arguments.hpp"
#include "command_line/commands.hpp"
#include "command_line/completion.hpp"
#include "common/console.hpp"
#include "common/signals.hpp"
#include "common/text.hpp"
#include "compartment/compartment.hpp"
#include "relay/relay.hpp"
#include "service/control_compartment.hpp"

namespace bulkhead::program {

namespace {

// Message buffers are allocated for every call. By default the C library returns large blocks, and
// free memory at the end of the heap, to the kernel each time, and the next call takes page faults
// for them again: with 100 KB in an argument that is 40 % of a call's processor time. This keeps at
// most kept_bytes instead.
void limit_memory_trimming() {
  constexpr int kept_bytes = 8 << 20, mapped_alone_bytes = 4 << 20;
  ::mallopt(M_TRIM_THRESHOLD, kept_bytes);
  ::mallopt(M_MMAP_THRESHOLD, mapped_alone_bytes);
}

int run(const Arguments &arguments) {
  switch (arguments.command) {
    case Command::serve:
    case Command::stdio:
      return run_gateway(arguments);
    case Command::tools:
    case Command::resources:
    case Command::prompts:
      return run_list(arguments);
    case Command::call:
      return run_call(arguments);
    case Command::warm:
      return run_warm(arguments);
    case Command::aggregator:
      return run_aggregator(arguments);
    case Command::status:
      return run_status(arguments);
    case Command::doctor:
      return run_doctor(arguments);
    case Command::approve:
      return run_approve(arguments);
    case Command::revoke:
      return run_revoke(arguments);
    case Command::approvals:
      return run_approvals(arguments);
    case Command::pins:
      return run_pins(arguments);
    case Command::reload:
      return run_reload(arguments);
    case Command::import_configs:
      return run_import(arguments);
    case Command::mcp:
      return run_mcp(arguments);
    case Command::profile_show:
      return run_profile_show(arguments);
    case Command::plugin_list:
      return run_plugin_list(arguments);
    case Command::policy_check:
    case Command::policy_explain:
    case Command::policy_test:
      return run_policy(arguments);
    case Command::policy_replay:
      return run_policy_replay(arguments);
    case Command::inspect:
      return run_inspect(arguments);
    case Command::timeline:
      return run_timeline(arguments);
    case Command::calls:
      return run_calls(arguments);
    case Command::audit_verify:
      return run_audit_verify(arguments);
    case Command::relay:  // handled by main()
      break;
    case Command::completion:
      return write_stdout(bash_completion(command_tree())) ? exit_ok : exit_failed;
  }
  return exit_usage;
}

}  // namespace
}  // namespace bulkhead::program

int main(int argc, char **argv) {
  using namespace bulkhead::program;
  limit_memory_trimming();
  // Started by the supervisor only, so help does not show it.
  if (argc == 3 && std::string_view(argv[1]) == "compartment") {
    return bulkhead::run_compartment(make_control_compartment);
  }
  // The relay has its own command line, shared with the small program for guests.
  if (argc > 1 && std::string_view(argv[1]) == "relay") {
    return bulkhead::relay::run("bulkhead relay", argc - 1, argv + 1);
  }
  install_signal_handlers();
  try {
    const auto parsed = parse_arguments(argc, argv);
    if (const int *code = std::get_if<int>(&parsed)) return *code;
    return run(std::get<Arguments>(parsed));
  } catch (const std::exception &error) {  // usually out of memory
    return complain(error.what());
  }
}
