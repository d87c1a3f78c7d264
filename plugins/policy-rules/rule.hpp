// A rule prepared for evaluation: compiled, checked and immutable.
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

// The `over` key: the rule matches when this amount is exceeded.
struct Budget {
  enum class What : std::uint8_t { calls, bytes, destinations };
  What what = What::calls;
  std::uint64_t most = 0;    // the rule matches above this amount
  std::uint64_t per_ms = 0;  // window; 0 if counts do not expire
  // Counting keys. Each combination of their values has its own count.
  bool by_session = false, by_principal = false, by_process = false, by_server = false,
       by_tool = false;
};

struct Rule {
  std::string id;     // "security.rules.mcp.no-delete"
  std::string place;  // location in the profile; empty for generated rules
  std::string layer;  // layer of the profile
  Event event = Event::request;
  Action action = Action::block;
  int priority = 0;
  bool warned = false;  // allows the call with a warning in the record
  std::string reason;
  std::optional<cel::Program> condition;  // if not set, the rule always matches
  std::uint64_t reads = 0;                // bits of roots
  // Required prefixes of the server and tool names, checked before the condition. The strings
  // belong to the condition.
  std::vector<std::pair<Root, std::string_view>> begins;
  std::optional<Rewrite> rewrite;
  std::optional<Budget> over;
  // The test of a generated rule. It matches this server's tools that are in the list, or, if
  // `listed` is false, those that are not.
  bool by_list = false, listed = false;
  std::string server;
  std::vector<std::string> tools;  // sorted
};

}  // namespace bulkhead::rules
