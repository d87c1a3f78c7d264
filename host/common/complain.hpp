// Exit codes of the commands, and functions that print error messages to standard error.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::program {

enum ExitCode : int {
  exit_ok = 0,
  exit_failed = 1,
  exit_usage = 2,
  exit_not_running = 3,
  exit_in_part = 4  // reload: some changes took effect, others require a restart
};

// Prints the configuration errors, one per line. Returns exit_failed.
int report_config_errors(const std::vector<std::string> &lines);
// Prints "bulkhead: text" and returns `code`.
int complain(std::string_view text, int code = exit_failed);

}  // namespace bulkhead::program
