// Project files: a profile or an mcp.json that came with a repository. Whoever can commit to the
// repository writes them, so that nothing in them is used, not even expanded, before a person on
// this machine has seen it: the approval is for the digest of one server's definition.
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

// A longer definition (its serialisation) is never used: nobody reads that much before saying yes.
inline constexpr std::size_t kProjectEntryBytes = 64u << 10;

// Approved servers of one file that are used, and of the others those that are listed.
inline constexpr std::size_t kProjectServers = 100;

// One server of a project file, as it is written there: no reference is resolved, nothing checked.
// All texts are untrusted; values of env and headers may be credentials.
struct ProjectEntry {
  std::string name;
  std::uint32_t line = 0;
  // What the approval is for: {"file":F,"name":N,"server":{...}}, where F is the file's absolute
  // path. JSON without white space, keys in the order of their bytes, strings escaped as RFC 8785
  // does (\b \t \n \f \r \" \\, other control characters below U+0020 as \u00xx in small letters,
  // nothing else), numbers as they are written (TOML: in decimal).
  std::string serialisation;
  std::string digest;  // SHA-256 of it, 64 small hexadecimal digits
  std::string command, url;
  std::string cwd;  // where it would be started: the folder of the file, if it says nothing else
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env, headers;
  std::vector<std::string> variables;  // what its references would read from our environment
  std::vector<std::pair<std::string, std::string>> others;  // every other key, its JSON masked
};

// The servers of one layer. Errors: it cannot be read as a profile at all.
std::variant<std::vector<ProjectEntry>, std::vector<ProfileError>> read_project(
    const ProfileLayer &layer);

}  // namespace bulkhead
