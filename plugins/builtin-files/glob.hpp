// Patterns for file names.
#pragma once

#include <string_view>

namespace builtin_files {

// `*`, `?` and `[a-z]` stand for characters within one component, `**` as a whole component for any
// number of components, also none. A pattern without "/" is for the last component, wherever it is.
// Takes at most (components of pattern) x (components of path) comparisons; both are bounded by
// 4,096 bytes (longer: no match).
bool glob_matches(std::string_view pattern, std::string_view path);

}  // namespace builtin_files
