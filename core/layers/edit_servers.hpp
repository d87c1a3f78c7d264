// Edits the servers in a profile file's text. Comments, order and all other text are preserved byte
// for byte. Thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "profile/layer.hpp"

namespace bulkhead {

struct NewServer {
  std::string name;
  std::string command;  // empty if `url` is set
  std::vector<std::string> args;
  std::string cwd;  // may be empty
  std::vector<std::pair<std::string, std::string>> env;
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers;
};

// Returns the names of the servers in the file, in file order. Returns BH_E_INVALID, with the line
// of the error, if the text cannot be parsed in the file's format.
Result<std::vector<std::string>> servers_of_file(const ProfileLayer &file);

// Adds a server in the file's format and returns the new text. Does not validate the server
// (load_profile() does). Returns BH_E_DENIED if the name exists, BH_E_INVALID if the file cannot be
// parsed, and BH_E_UNSUPPORTED if the file's syntax cannot be edited automatically.
Result<std::string> file_with_server(const ProfileLayer &file, const NewServer &server);

// Adds the server that `toml` defines in tables [mcpServers.NAME], and returns the new text. The
// server is converted to the file's format; its comments are kept only in a TOML file. Returns the
// same errors as file_with_server(), and BH_E_INVALID if `toml` does not define the server.
Result<std::string> file_with_tables(const ProfileLayer &file, std::string_view name,
                                     const std::string &toml);

// Removes the server and returns the new text. Returns BH_E_NOT_FOUND if there is no server with
// this name, BH_E_INVALID if the file cannot be parsed, and BH_E_UNSUPPORTED if the file's syntax
// cannot be edited automatically.
Result<std::string> file_without_server(const ProfileLayer &file, std::string_view name);

// Enables or disables the server and returns the new text, which is unchanged if the server is
// already in that state. Returns the same errors as file_without_server().
Result<std::string> file_with_disabled(const ProfileLayer &file, std::string_view name,
                                       bool disabled);

}  // namespace bulkhead
