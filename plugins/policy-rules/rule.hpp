// Defines a compiled rule, which is immutable.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cel/program.hpp"
#include "rewrite.hpp"
#include "roots.hpp"

namespace bulkhead::rules {

enum class Action : std::uint8_t { allow, ask, block, rewrite };
std::string_view to_string(Action action) noexcept;

// The budget of a rule (the `over` key). A rule with a budget matches only calls that exceed it.
struct Budget {
  enum class What : std::uint8_t { calls, bytes, destinations };
  What what = What::calls;
  std::uint64_t most = 0;    // maximum amount within the budget
  std::uint64_t per_ms = 0;  // length of the sliding window; 0 if there is no window
  // Counts are kept separately for each combination of the values of these attributes.
  bool by_session = false, by_principal = false, by_process = false, by_server = false,
       by_tool = false;
};

struct Rule {
  std::string id;     // such as "security.rules.mcp.no-delete"
  std::string place;  // location in the profile; empty for generated rules
  std::string layer;  // layer of the profile
  Event event = Event::request;
  Action action = Action::block;
  int priority = 0;
  bool warned = false;  // if the rule allows a call, the record contains a warning
  std::string reason;
  // If unset, the rule matches every message, unless by_list is true.
  std::optional<cel::Program> condition;
  std::uint64_t reads = 0;  // bits of the roots that the condition reads
  // Prefixes that the server and tool names must have. They are checked before the condition is
  // evaluated. The condition owns the strings.
  std::vector<std::pair<Root, std::string_view>> begins;
  std::optional<Rewrite> rewrite;
  std::optional<Budget> over;
  // by_list is true for rules that are generated from an allow list. Such rules have no condition.
  // If `listed` is true, the rule matches calls to the tools of `server` that are in `tools`.
  // Otherwise, it matches calls to all other tools of `server`.
  bool by_list = false, listed = false;
  std::string server;
  std::vector<std::string> tools;  // sorted
};

}  // namespace bulkhead::rules
