#include "corporation/holds.hpp"

#include "corporation/corp_path.hpp"

namespace bulkhead {

const ProfileHold *find_hold(const std::vector<ProfileHold> &holds,
                             const std::vector<std::string> &path) {
  for (const ProfileHold &hold : holds)
    if (profiles::covers(hold.path, path)) return &hold;
  return nullptr;
}

}  // namespace bulkhead
