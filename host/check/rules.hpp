// The rules that `bulkhead plugin check` verifies. docs/plugin-rules.md explains each of them.
//
// A rule's number never changes and is never used for another rule.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace bulkhead::check {

enum class Rule : std::uint16_t {
  // The files, which are read without running the plugin's code.
  trusted_files = 101,
  complete_library = 102,
  manifest = 103,
  only_entry_exported = 104,
  no_unique_symbols = 105,
  no_static_tls = 106,
  safe_segments = 107,
  no_origin_path = 108,
  no_process_functions = 109,

  // Loading the library.
  loads = 201,
  silent_constructors = 202,
  entry = 203,
  descriptor = 204,
  init = 205,
  unknown_id = 206,

  // An instance of any kind.
  instance_table = 301,
  extensions = 302,
  configure = 303,
  bad_configuration = 304,
  fewer_extensions = 305,
  error_buffers = 306,
  releases_everything = 307,
  host_rules = 308,
  two_instances = 309,
  no_growth = 310,
  newer_host = 311,
  process_unchanged = 312,
  clean_exit = 313,
  instances_on_threads = 314,

  // Tools.
  lists = 401,
  completes_once = 402,
  unknown_tool = 403,
  hostile_arguments = 404,
  cancel = 405,
  stop_during_calls = 406,
  rejected_completion = 407,
  does_not_block = 408,
  drain_calls = 409,
  stop_at_once = 410,
  contents = 411,
  unknown_content = 412,
  subscriptions = 413,

  // Policies.
  policy_needs = 501,
  verdicts = 502,
  hostile_requests = 503,
  result_verdicts = 504,
  pending_decisions = 505,
  reconfigure = 506,
  unknown_event = 507,
  stop_during_decisions = 508,
  moved_state = 509,

  // Telemetry.
  telemetry_needs = 601,
  batches = 602,
  hostile_records = 603,
  commits = 604,
  drain_records = 605,

  // Connectors.
  lanes_close = 701,
  lane_messages = 702,
  hostile_definitions = 703,
  stop_with_lanes = 704,

  // Transports.
  listening = 801,
  unknown_handles = 802,
};

struct RuleText {
  Rule rule;
  std::string_view title;  // what a plugin must do, as one sentence without a full stop
  std::string_view fix;    // what to do if the rule is violated
};

// All rules, in order.
std::span<const RuleText> all_rules() noexcept;
const RuleText &text_of(Rule rule) noexcept;
// Returns the rule's number as text, such as "BH101".
std::string id_of(Rule rule);
// Returns the rule with this number, or nothing if there is none.
std::optional<Rule> rule_of(std::uint32_t number) noexcept;

}  // namespace bulkhead::check
