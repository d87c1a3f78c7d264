// Implements `plugin check`, which verifies that a plugin follows the rules of the ABI.
#include "check/check_plugin.hpp"
#include "command_line/commands.hpp"
#include "common/complain.hpp"
#include "common/console.hpp"
#include "common/signals.hpp"

namespace bulkhead::program {
namespace {

constexpr int exit_signalled = 130;

}  // namespace

int run_plugin_check(const Arguments &arguments) {
  check::CheckOptions options;
  if (!arguments.plugin.config.empty()) options.config = arguments.plugin.config;
  if (!arguments.plugin.definition.empty()) options.definition = arguments.plugin.definition;
  // A signal ends the trial that is running; its folder is removed.
  set_signalled({[](void *) {}, nullptr});
  const auto report = check::check_plugin(arguments.plugin.file, options);
  set_signalled({});
  if (!report) return complain(report.error().text, exit_usage);
  const std::string text = arguments.plugin.junit ? check::to_junit(*report)
                           : arguments.json       ? check::to_json(*report)
                                                  : check::to_text(*report);
  if (!write_stdout(text)) return exit_failed;
  if (!report->violations.empty()) return exit_failed;
  if (stop_requested()) return exit_signalled;
  return report->complete() ? exit_ok : exit_in_part;
}

}  // namespace bulkhead::program
