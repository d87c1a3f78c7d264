// Project files: a profile or an mcp.json that came with a repository. Every committer of the
// repository can write them, so nothing in them is used, not even expanded, without human approval
// on this machine. An approval is for the digest of one server's definition.
//
// Thread: control only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "profile/layer.hpp"

namespace bulkhead {

// A definition with a longer serialisation is never used: it is too long to be reviewed.
inline constexpr std::size_t kProjectEntryBytes = 64u << 10;

// The limit for approved servers of one file, and for listed servers without approval.
inline constexpr std::size_t kProjectServers = 100;

// One server of a project file as written: no reference is resolved, nothing is validated.
// All texts are untrusted; values of env and headers may be credentials.
struct ProjectEntry {
  std::string name;
  std::uint32_t line = 0;
  // The subject of the approval: {"file":F,"name":N,"server":{...}}, where F is the file's absolute
  // path. JSON without white space, keys in the order of their bytes, strings escaped as RFC 8785
  // does (\b \t \n \f \r \" \\, other control characters below U+0020 as \u00xx in small letters,
  // nothing else), numbers as they are written (TOML: in decimal).
  std::string serialisation;
  std::string digest;  // SHA-256 of it, 64 small hexadecimal digits
  std::string command, url;
  std::string cwd;  // the working directory; default: the folder of the file
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env, headers;
  std::vector<std::string> variables;  // environment variables that its references read
  std::vector<std::pair<std::string, std::string>> others;  // every other key, its JSON masked
};

// The servers of one layer, or the errors of the parser.
std::variant<std::vector<ProjectEntry>, std::vector<ProfileError>> read_project(
    const ProfileLayer &layer);

}  // namespace bulkhead
