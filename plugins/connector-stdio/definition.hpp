// Parses a server's definition from the profile and prepares it for execve().
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
  std::string cwd;               // if empty, the gateway's working directory
  std::string stderr_file;       // if empty, standard error is not written to a file
  std::uint64_t stderr_bytes = 1u << 20;
  std::vector<std::string> hidden;  // configured values to mask in logs and error messages
};

// Parses a server definition in JSON (bh_lane_info) and adds the base variables from the
// environment of this process (HOME, LANG, LOGNAME, PATH, SHELL, TERM, USER). Other variables are
// not inherited. Returns BH_E_INVALID if the definition is invalid. The error names the server and
// the member, but contains no values.
bh_status parse_definition(std::string_view server, std::string_view json, Definition *out,
                           bh_error *error);

// Resolves `command` to a path. If `command` contains a slash, it is used as the path. Otherwise,
// the absolute folders of the definition's PATH are searched in order. Fails with BH_E_NOT_FOUND,
// or with BH_E_DENIED if the file is not executable.
bh_status find_program(const Definition &definition, std::string *out, bh_error *error);

}  // namespace connector_stdio
