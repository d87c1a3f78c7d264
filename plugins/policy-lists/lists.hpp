// Lists of servers and tools, and what they say of one call.
//
// In this order: a global block; blocked servers; allowed servers, if any are named; the tool's own
// permission; the default. Of each key the corporation's value counts before the user's.
//
// A tool is named server__tool, which can be read in several ways when either name has a "__" (a
// server invents the names of its tools): such a name speaks of the server before its first "__".
// For what else is spelt so it counts where it is stricter than the default.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::lists {

enum class Permission : std::uint8_t { allow, warn, block };  // later ones are stricter

struct Decision {
  Permission permission = Permission::allow;
  std::string rule;  // the key that decided; empty: none did
};

class Lists {
 public:
  // By the plugin's configuration, one JSON object. An error names the key.
  static std::expected<Lists, std::string> load(std::string_view config_json);

  // `tool`: empty for what is no tool, of which the last two say nothing.
  Decision decide(std::string_view server, std::string_view tool) const;
  // Everything is allowed, and nothing is warned of.
  bool empty() const;

 private:
  friend struct Reader;

  bool block_all_ = false;
  std::vector<std::string> allowed_;  // sorted; empty: all
  std::map<std::string, bool, std::less<>> enabled_;
  std::map<std::string, Permission, std::less<>> tools_;  // "server__tool"
  Permission fallback_ = Permission::allow;
};

}  // namespace bulkhead::lists
