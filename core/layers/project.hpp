// Project files: a profile or an mcp.json that is part of a repository. Anyone who can commit to
// the repository can write them. Therefore, nothing in them is used, or even expanded, without
// human approval on this machine. An approval applies to the digest of one server's definition.
//
// Used only on the control thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "profile/layer.hpp"

namespace bulkhead {

// A definition whose serialization is longer than this is never used, because it is too long to
// review.
inline constexpr std::size_t kProjectEntryBytes = 64u << 10;

// Limits the approved servers of one file and, separately, the listed servers without approval.
inline constexpr std::size_t kProjectServers = 100;

// One server of a project file as written: references are not resolved, and nothing is validated.
// All strings are untrusted; values in env and headers may be credentials.
struct ProjectEntry {
  std::string name;
  std::uint32_t line = 0;
  // The JSON text that is approved: {"file":F,"name":N,"server":{...}}, where F is the file's
  // absolute path. It has no white space. Keys are in byte order. Strings are escaped as in RFC
  // 8785 (\b \t \n \f \r \" \\, other control characters below U+0020 as \u00xx in lower case,
  // nothing else). Numbers are as written (from TOML: in decimal).
  std::string serialisation;
  std::string digest;  // SHA-256 of `serialisation`, 64 lower-case hexadecimal digits
  std::string command, url;
  std::string cwd;  // working directory; default: the folder of the file
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env, headers;
  std::vector<std::string> variables;  // environment variables to which the definition refers
  std::vector<std::pair<std::string, std::string>> others;  // all other keys, with masked JSON
};

// Returns the servers of one layer, or the parser's errors.
std::variant<std::vector<ProjectEntry>, std::vector<ProfileError>> read_project(
    const ProfileLayer &layer);

}  // namespace bulkhead
