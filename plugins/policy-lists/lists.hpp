// Lists of servers and tools that determine whether a call is allowed.
//
// Order of evaluation: the global block; blocked servers; allowed servers, if any are listed; the
// permission of the tool; the default. For each key, the corporation's value takes precedence over
// the user's.
//
// A tool is named server__tool. The combined name is ambiguous if either part contains "__" (a
// server chooses its tool names). An entry refers to the server before its first "__". It applies
// to another server and tool with the same combined name only if it is stricter than the default.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::lists {

enum class Permission : std::uint8_t { allow, warn, block };  // in ascending order of strictness

struct Decision {
  Permission permission = Permission::allow;
  std::string rule;  // the key that decided; empty if there is none
};

class Lists {
 public:
  // Reads the plugin's configuration, a JSON object. An error names the key.
  static std::expected<Lists, std::string> load(std::string_view config_json);

  // Decides one call. `tool` is empty for calls other than tool calls, to which tool permissions
  // and the default do not apply.
  Decision decide(std::string_view server, std::string_view tool) const;
  // Returns true if all calls are allowed without warnings.
  bool empty() const;

 private:
  friend struct Reader;

  bool block_all_ = false;
  std::vector<std::string> allowed_;  // sorted; if empty, all servers are allowed
  std::map<std::string, bool, std::less<>> enabled_;
  std::map<std::string, Permission, std::less<>> tools_;  // "server__tool"
  Permission fallback_ = Permission::allow;
};

}  // namespace bulkhead::lists
