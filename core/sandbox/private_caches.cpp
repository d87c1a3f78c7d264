#include "sandbox/private_caches.hpp"

#include <filesystem>

#include "sandbox/paths.hpp"

namespace bulkhead {

std::vector<std::string> kept_folders(const PrivateCache &cache, const std::string &at) {
  constexpr std::size_t most = 64;
  std::vector<std::string> kept;
  for (const std::string_view name : cache.kept) {
    if (name == "*") {
      std::error_code error;
      // Not a range-for, which throws if an entry cannot be read.
      for (auto entry = std::filesystem::directory_iterator(at, error);
           !error && entry != std::filesystem::directory_iterator() && kept.size() < most;
           entry.increment(error)) {
        std::error_code gone;
        if (entry->is_directory(gone)) kept.push_back(entry->path().string());
      }
    } else if (!name.empty() && is_folder(joined(at, name))) {
      kept.push_back(joined(at, name));
    }
  }
  return kept;
}

}  // namespace bulkhead
