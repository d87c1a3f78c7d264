// Decides whether a call is allowed, based on lists of servers and tools.
//
// The following are checked in this order: the global block, the blocked servers, the allowed
// servers (if any are listed), the permission of the tool, the default. If the corporation and the
// user both set a value, the corporation's value takes precedence. Both can set the global block.
//
// A tool is identified by the combined name server__tool. This name is ambiguous if either part
// contains "__", and a server may give its tools any names. An entry is therefore meant for the
// server whose name is the part before the first "__". If another server and tool have the same
// combined name, the entry applies to them only if it is stricter than the default.
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
  std::string rule;  // the key that decided; empty if no key did
};

class Lists {
 public:
  // Reads the plugin's configuration, a JSON object. On failure, returns a message that names the
  // key.
  static std::expected<Lists, std::string> load(std::string_view config_json);

  // Decides one call. `tool` is empty for requests other than tool calls. Tool permissions and the
  // default do not apply to these requests.
  Decision decide(std::string_view server, std::string_view tool) const;
  // Returns true if every call is allowed without a warning.
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
