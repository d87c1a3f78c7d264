// Validates and compares the IDs and revisions of profiles.
#pragma once

#include <string_view>

namespace bulkhead {

// Returns true if the text has the form YYYY.MMDD.N.
bool is_revision(std::string_view text);
// Returns true if the text is 3 to 64 characters of a-z, 0-9 and '-' and does not start with '-'.
bool is_profile_id(std::string_view text);
// Returns true if revision `a` is older than `b`. Both must be revisions.
bool comes_before(std::string_view a, std::string_view b);

}  // namespace bulkhead
