// Matches paths against glob patterns.
#pragma once

#include <string_view>

namespace builtin_files {

// Returns true if `path` matches `pattern`. `*`, `?` and `[a-z]` match characters within one path
// component. A `**` component matches any number of components, including none. A pattern without
// "/" is matched against the last component of the path. Patterns and paths longer than 4,096 bytes
// never match. Compares each pattern component with each path component at most once.
bool glob_matches(std::string_view pattern, std::string_view path);

}  // namespace builtin_files
