// One rule, as the judge uses it: compiled, checked, never changed.
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

// `over`: the rule matches once this much has happened.
struct Budget {
  enum class What : std::uint8_t { calls, bytes, destinations };
  What what = What::calls;
  std::uint64_t most = 0;    // what is beyond matches
  std::uint64_t per_ms = 0;  // within so long; 0: ever
  // Counted for each of these by itself.
  bool by_session = false, by_principal = false, by_process = false, by_server = false,
       by_tool = false;
};

struct Rule {
  std::string id;     // "security.rules.mcp.no-delete"
  std::string place;  // "/etc/b.toml:12"; empty: generated
  std::string layer;  // of the profile
  Event event = Event::request;
  Action action = Action::block;
  int priority = 0;
  bool warned = false;  // allowed, and the record says that it was warned of
  std::string reason;
  std::optional<cel::Program> condition;  // none: it always matches
  std::uint64_t reads = 0;                // bits of roots
  // What the names of server and tool begin with where the condition is true: looked at before it
  // is evaluated. In the condition's text.
  std::vector<std::pair<Root, std::string_view>> begins;
  std::optional<Rewrite> rewrite;
  std::optional<Budget> over;
  // What a generated rule tests instead of a condition: tools of this server, (not) in the list.
  bool by_list = false, listed = false;
  std::string server;
  std::vector<std::string> tools;  // sorted
};

}  // namespace bulkhead::rules
