// "did you mean": finds known names that resemble a mistyped name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::program {

// Returns at most three names, the most similar first: the name with the fewest different
// characters, and names that contain every word of `typed` ("files read" in "files__file_read";
// case is ignored).
std::vector<std::string> similar_names(std::string_view typed,
                                       const std::vector<std::string> &names);

// Returns `did you mean "a" or "b"?`, or an empty string if no name is similar.
std::string suggestion(std::string_view typed, const std::vector<std::string> &names);

}  // namespace bulkhead::program
