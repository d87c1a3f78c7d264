// Suggests known names for a mistyped name ("did you mean ...?").
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::program {

// Returns up to three similar names, best match first: the name with the smallest edit distance,
// followed by names that contain every word in `typed`. For example, "files read" matches
// "files__file_read". Case is ignored.
std::vector<std::string> similar_names(std::string_view typed,
                                       const std::vector<std::string> &names);

// Returns `did you mean "a" or "b"?`, or an empty string if no name is similar.
std::string suggestion(std::string_view typed, const std::vector<std::string> &names);

}  // namespace bulkhead::program
