#include "sandbox/home_folders.hpp"

#include <algorithm>

#include "sandbox/paths.hpp"
#include "sandbox/system_folders.hpp"

namespace bulkhead {
void HomeFolders::add(const std::string &home, WalkBudget *budget) {
  add_servers(home, real_path(home, budget));
  gateways_ = all_.size();
}

void HomeFolders::add_servers(const std::string &home, const std::string &real) {
  if (real.empty() || real == "/" || !is_folder(real) || in_closed_root(real)) return;
  if (std::string name = normal_path(home); name != real) names_.emplace_back(name, real);
  if (is_home(real)) return;
  all_.push_back(real);
  for (const MountTable::Other &other : mounts_.others(real)) {
    if (other.at == "/") continue;
    if (other.inside != real) {
      parts_.push_back(other);
    } else if (!is_home(other.at)) {
      all_.push_back(other.at);
    }
  }
}

bool HomeFolders::is_home(const std::string &path) const {
  return std::find(all_.begin(), all_.end(), path) != all_.end();
}

bool HomeFolders::contain(const std::string &path) const {
  return std::any_of(all_.begin(), all_.end(),
                     [&](const std::string &home) { return is_within(path, home); });
}

bool HomeFolders::are_within(const std::string &path) const {
  return holds_any(path, all_);
}

bool HomeFolders::of_gateway_are_within(const std::string &path) const {
  return holds_any(path, of_gateway());
}

std::string HomeFolders::with_real_home(const std::string &path) const {
  for (const auto &[name, real] : names_) {
    if (is_within(path, name)) return real + path.substr(name.size());
  }
  return path;
}

}  // namespace bulkhead
