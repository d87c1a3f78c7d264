// Editing the servers of a profile's file as text: comments, order and everything else stay the
// same, byte for byte. Thread: any.
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
  std::string cwd;  // empty: none
  std::vector<std::pair<std::string, std::string>> env;
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers;
};

// The names of this file's servers, in its order. BH_E_INVALID: neither TOML nor JSON; the error
// text has the place.
Result<std::vector<std::string>> servers_of_file(const ProfileLayer &file);

// The file's text with the server, in its format. load_profile() validates the server. BH_E_DENIED:
// the name exists. BH_E_INVALID: see above. BH_E_UNSUPPORTED: the syntax of the file cannot be
// edited automatically.
Result<std::string> file_with_server(const ProfileLayer &file, const NewServer &server);

// The file's text with the server that `toml` defines as tables [mcpServers.NAME], in its format;
// comments are kept in a TOML file. Errors: as of file_with_server().
Result<std::string> file_with_tables(const ProfileLayer &file, std::string_view name,
                                     const std::string &toml);

// The file's text without the server. BH_E_NOT_FOUND: no server of this name. BH_E_INVALID and
// BH_E_UNSUPPORTED: see above.
Result<std::string> file_without_server(const ProfileLayer &file, std::string_view name);

// The file's text with the server disabled, or enabled. Unchanged if it is so already.
// BH_E_NOT_FOUND: no server of this name. BH_E_INVALID and BH_E_UNSUPPORTED: see above.
Result<std::string> file_with_disabled(const ProfileLayer &file, std::string_view name,
                                       bool disabled);

}  // namespace bulkhead
