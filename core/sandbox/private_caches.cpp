#include "sandbox/private_caches.hpp"

#include "sandbox/folder_entries.hpp"
#include "sandbox/paths.hpp"

namespace bulkhead {

std::vector<std::string> kept_folders(const PrivateCache &cache, const std::string &at) {
  constexpr std::size_t most = 64;
  std::vector<std::string> kept;
  for (const std::string_view name : cache.kept) {
    if (name == "*") {
      for_each_entry(at, [&](const auto &entry) {
        std::error_code gone;
        if (kept.size() < most && entry.is_directory(gone)) kept.push_back(entry.path().string());
      });
    } else if (!name.empty() && is_folder(joined(at, name))) {
      kept.push_back(joined(at, name));
    }
  }
  return kept;
}

}  // namespace bulkhead
