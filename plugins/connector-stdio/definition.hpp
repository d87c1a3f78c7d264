// A server's definition from the profile, prepared for execve().
#pragma once

#include <bulkhead/abi/core.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace connector_stdio {

struct Definition {
  std::string server;  // name in the profile
  std::string command;
  std::vector<std::string> args;
  std::vector<std::string> env;  // "NAME=value": base environment and configured variables
  std::string cwd;               // the gateway's working directory if empty
  std::string stderr_file;       // no file if empty
  std::uint64_t stderr_bytes = 1u << 20;
  std::vector<std::string> hidden;  // configured values to mask in logs and error messages
};

// Parses the JSON object of bh_lane_info and adds the base environment (HOME, LANG, LOGNAME, PATH,
// SHELL, TERM, USER) of this process. No other variables are inherited. On failure, returns
// BH_E_INVALID and an error that names the server and the member, but contains no value.
bh_status parse_definition(std::string_view server, std::string_view json, Definition *out,
                           bh_error *error);

// Resolves `command`. If it contains a slash, it is a path. Otherwise, it is searched for in the
// absolute folders of the definition's PATH, and the first match is used. Fails with BH_E_NOT_FOUND
// or BH_E_DENIED.
bh_status find_program(const Definition &definition, std::string *out, bh_error *error);

}  // namespace connector_stdio
