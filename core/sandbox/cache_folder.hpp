// Each server has a cache folder, cache/SERVER/KEY in the state folder. KEY is a digest of the
// program that the server runs: the command and the arguments up to the package. A server whose
// definition names another program therefore does not use files that the earlier program left
// behind, even if that program is still running. Servers cannot write to cache/SERVER itself.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bulkhead {

// Returns KEY: 16 hexadecimal digits.
std::string cache_key(std::string_view command, const std::vector<std::string> &args);

// Creates the cache folder and returns its real path. Returns an empty string if `state_dir` is
// empty, if the server's name is not a file name or begins with a dot, or if the folder cannot be
// created.
std::string make_cache_folder(const std::string &state_dir, const std::string &server,
                              std::string_view command, const std::vector<std::string> &args);

}  // namespace bulkhead
