// A server's definition as the profile gives it, made ready for execve().
#pragma once

#include <bulkhead/abi/core.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace connector_stdio {

struct Definition {
  std::string server;  // its name in the profile
  std::string command;
  std::vector<std::string> args;
  std::vector<std::string> env;  // "NAME=value": the base list and what is configured
  std::string cwd;               // empty: the gateway's
  std::string stderr_file;       // empty: none is kept
  std::uint64_t stderr_bytes = 1u << 20;
  std::vector<std::string> hidden;  // configured values that must not reach a log or an error text
};

// Parses the JSON object of bh_lane_info and adds the base environment (HOME, LANG, LOGNAME, PATH,
// SHELL, TERM, USER) of this process; nothing else is inherited. On failure BH_E_INVALID and a text
// that names server and member but no value.
bh_status parse_definition(std::string_view server, std::string_view json, Definition *out,
                           bh_error *error);

// Finds the program that `command` means: itself when it holds a slash, else the first match in the
// absolute folders of the definition's PATH. On failure BH_E_NOT_FOUND or BH_E_DENIED.
bh_status find_program(const Definition &definition, std::string *out, bh_error *error);

}  // namespace connector_stdio
