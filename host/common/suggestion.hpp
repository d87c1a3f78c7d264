// "did you mean": known names that resemble a mistyped one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::program {

// At most three names, the most similar first: the one with the fewest differing characters, and
// those that contain every word of `typed` ("files read" in "files__file_read"; case does not
// count).
std::vector<std::string> similar_names(std::string_view typed,
                                       const std::vector<std::string> &names);

// `did you mean "a" or "b"?`; empty: no name is similar.
std::string suggestion(std::string_view typed, const std::vector<std::string> &names);

}  // namespace bulkhead::program
