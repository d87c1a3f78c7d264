// Glob patterns for paths.
#pragma once

#include <string_view>

namespace builtin_files {

// `*`, `?` and `[a-z]` match characters within one component; `**` as a whole component matches any
// number of components, including none. A pattern without "/" is matched against the last
// component. A match takes at most (components of pattern) x (components of path) comparisons. Both
// strings are limited to 4,096 bytes; longer strings do not match.
bool glob_matches(std::string_view pattern, std::string_view path);

}  // namespace builtin_files
