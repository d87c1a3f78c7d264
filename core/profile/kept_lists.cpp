#include "profile/kept_lists.hpp"

#include <utility>

namespace bulkhead {

void merge_kept_list(KeptLists *kept, KeptList list) {
  std::erase_if(kept->lists, [&](const KeptList &known) { return known.caps == list.caps; });
  if (!list.text.empty() && list.text.size() <= max_kept_list_bytes) {
    kept->lists.push_back(std::move(list));
  }
  while (kept->lists.size() > most_kept_lists) kept->lists.erase(kept->lists.begin());
}

}  // namespace bulkhead
