// Project files: a profile or an mcp.json that came with a repository. Every committer of the
// repository can write them. Therefore nothing in them is used, or even expanded, without human
// approval on this machine. An approval applies to the digest of one server's definition.
//
// Used on the control thread only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "profile/layer.hpp"

namespace bulkhead {

// A definition with a longer serialization is never used: it is too long for review.
inline constexpr std::size_t kProjectEntryBytes = 64u << 10;

// The limit for approved servers in one file, and for listed servers without approval.
inline constexpr std::size_t kProjectServers = 100;

// One server of a project file as written: no reference is resolved and nothing is validated. All
// texts are untrusted; values of env and headers may be credentials.
struct ProjectEntry {
  std::string name;
  std::uint32_t line = 0;
  // The subject of the approval: {"file":F,"name":N,"server":{...}}, where F is the file's absolute
  // path. The JSON has no white space; keys are in byte order; strings are escaped as in RFC 8785
  // (\b \t \n \f \r \" \\, other control characters below U+0020 as \u00xx in lower case, nothing
  // else); numbers are as written (from TOML: in decimal).
  std::string serialisation;
  std::string digest;  // SHA-256 of `serialisation`, 64 lower-case hexadecimal digits
  std::string command, url;
  std::string cwd;  // the working directory; default: the folder of the file
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env, headers;
  std::vector<std::string> variables;  // environment variables that the definition refers to
  std::vector<std::pair<std::string, std::string>> others;  // all other keys, with masked JSON
};

// Returns the servers of one layer, or the errors of the parser.
std::variant<std::vector<ProjectEntry>, std::vector<ProfileError>> read_project(
    const ProfileLayer &layer);

}  // namespace bulkhead
