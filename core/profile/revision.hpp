// A profile's identity: its id and revision.
#pragma once

#include <string_view>

namespace bulkhead {

// Returns true for text in the form YYYY.MMDD.N.
bool is_revision(std::string_view text);
// Returns true for 3 to 64 characters of a-z, 0-9 and '-' that do not start with '-'.
bool is_profile_id(std::string_view text);
// Returns true if revision `a` is older than `b`. Both must be revisions.
bool comes_before(std::string_view a, std::string_view b);

}  // namespace bulkhead
