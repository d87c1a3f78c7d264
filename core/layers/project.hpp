// Reads project files: profiles or mcp.json files in a repository. Anyone who can commit to the
// repository can change them. Therefore nothing in them is used or expanded until a person has
// approved it on this machine. An approval applies to the digest of one server's definition.
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

// Maximum size of a definition's serialized form. A longer definition cannot be approved, because
// it is too long to review.
inline constexpr std::size_t kProjectEntryBytes = 64u << 10;

// Maximum number of approved servers in a file. The unapproved servers are counted separately and
// have the same limit.
inline constexpr std::size_t kProjectServers = 100;

// One server as written in the project file: references are not expanded, and nothing is validated.
// All strings are untrusted. Values in env and headers may be credentials.
struct ProjectEntry {
  std::string name;
  std::uint32_t line = 0;
  // The JSON text to which an approval applies: {"file":F,"name":N,"server":{...}}. F is the file's
  // absolute path. There is no white space. Keys are sorted by bytes. Strings are escaped as in RFC
  // 8785 (\b \t \n \f \r \" \\, other control characters below U+0020 as \u00xx in lowercase,
  // nothing else). Numbers are kept as written (numbers from TOML in decimal).
  std::string serialisation;
  std::string digest;  // SHA-256 of `serialisation`, as 64 lowercase hexadecimal digits
  std::string command, url;
  std::string cwd;  // working directory; defaults to the folder of the file
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env, headers;
  // The environment variables to which url, env, headers and bearer tokens refer; "input:ID" stands
  // for ${input:ID}.
  std::vector<std::string> variables;
  // all other keys, and their values as JSON with masked credentials
  std::vector<std::pair<std::string, std::string>> others;
};

// Returns the servers of a project file, or the parser's errors.
std::variant<std::vector<ProjectEntry>, std::vector<ProfileError>> read_project(
    const ProfileLayer &layer);

}  // namespace bulkhead
