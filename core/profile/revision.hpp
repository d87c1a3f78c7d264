// Identity of a profile: its id and revision.
#pragma once

#include <string_view>

namespace bulkhead {

// True for text of the form YYYY.MMDD.N.
bool is_revision(std::string_view text);
// True for 3 to 64 characters of a-z, 0-9 and '-', not starting with '-'.
bool is_profile_id(std::string_view text);
// True if revision `a` comes before `b`; both must be revisions.
bool comes_before(std::string_view a, std::string_view b);

}  // namespace bulkhead
