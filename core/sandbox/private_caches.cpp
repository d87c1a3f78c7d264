#include "sandbox/private_caches.hpp"

#include <filesystem>

#include "sandbox/paths.hpp"

namespace bulkhead {
namespace {

constexpr std::size_t most_kept = 64;  // folders that are shown individually

}  // namespace

std::vector<std::string> kept_folders(const PrivateCache &cache, const std::string &at) {
  std::vector<std::string> kept;
  for (const std::string_view name : cache.kept) {
    if (name == "*") {
      std::error_code error;
      for (const auto &entry : std::filesystem::directory_iterator(at, error)) {
        if (kept.size() < most_kept && entry.is_directory(error))
          kept.push_back(entry.path().string());
      }
    } else if (!name.empty() && is_folder(joined(at, name))) {
      kept.push_back(joined(at, name));
    }
  }
  return kept;
}

}  // namespace bulkhead
