// Edits the servers in the text of a profile file. Comments, order and all other text are preserved
// byte for byte. Thread-safe.
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
  std::string command;  // or a URL
  std::vector<std::string> args;
  std::string cwd;  // may be empty
  std::vector<std::pair<std::string, std::string>> env;
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers;
};

// Returns the names of the file's servers in order. Returns BH_E_INVALID if the text is neither
// TOML nor JSON; the error message includes the location.
Result<std::vector<std::string>> servers_of_file(const ProfileLayer &file);

// Returns the file's text with the server added in the file's format. load_profile() validates the
// server. Returns BH_E_DENIED if the name exists, BH_E_INVALID as above, and BH_E_UNSUPPORTED if
// the file's syntax cannot be edited automatically.
Result<std::string> file_with_server(const ProfileLayer &file, const NewServer &server);

// Returns the file's text with a server added that `toml` defines as tables [mcpServers.NAME]. The
// server is written in the file's format; its comments are kept only in a TOML file. Errors are the
// same as for file_with_server().
Result<std::string> file_with_tables(const ProfileLayer &file, std::string_view name,
                                     const std::string &toml);

// Returns the file's text without the server. Returns BH_E_NOT_FOUND if there is no server with
// this name, and BH_E_INVALID and BH_E_UNSUPPORTED as above.
Result<std::string> file_without_server(const ProfileLayer &file, std::string_view name);

// Returns the file's text with the server enabled or disabled. If the server is already in that
// state, the text is unchanged. Errors are the same as for file_without_server().
Result<std::string> file_with_disabled(const ProfileLayer &file, std::string_view name,
                                       bool disabled);

}  // namespace bulkhead
