// The servers of a profile's file, added and removed as text: comments, order and everything else
// stay as they are, byte for byte. Thread: any.
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

// The names of the servers that this file itself has, in its order. BH_E_INVALID: it is neither
// TOML nor JSON; the text says where.
Result<std::vector<std::string>> servers_of_file(const ProfileLayer &file);

// The file's text with the server, in its format. Whether the server is a good one is for
// load_profile(). BH_E_DENIED: it has one of this name. BH_E_INVALID: see above.
// BH_E_UNSUPPORTED: the text is written in a way that this cannot edit.
Result<std::string> file_with_server(const ProfileLayer &file, const NewServer &server);

// The file's text without the server. BH_E_NOT_FOUND: it has none of this name. BH_E_INVALID and
// BH_E_UNSUPPORTED: see above.
Result<std::string> file_without_server(const ProfileLayer &file, std::string_view name);

}  // namespace bulkhead
