// Validates and compares the IDs and revisions of profiles.
#pragma once

#include <string_view>

namespace bulkhead {

// Returns true if the text has the form YYYY.MMDD.N.
bool is_revision(std::string_view text);
// Returns true if the text consists of 3 to 64 characters from [a-z0-9-] and does not start with
// '-'.
bool is_profile_id(std::string_view text);
// Returns true if revision `a` is older than `b`. Both must be valid revisions (see is_revision()).
bool comes_before(std::string_view a, std::string_view b);

}  // namespace bulkhead
