#include "sandbox/named_paths.hpp"

#include <climits>
#include <utility>

#include "sandbox/paths.hpp"

namespace bulkhead {

std::vector<NamedPath> named_paths(const ChildPolicy &policy, const HomeFolders &homes,
                                   WalkBudget *budget) {
  std::vector<NamedPath> out;
  const auto add = [&](const std::string &text, NamedPath::As as, bool home = true) {
    if (!text.starts_with('/') || text.size() >= PATH_MAX) return;
    std::string path = normal_path(text);
    PathWalk walk = walk_path(path, budget);
    if (!home && walk.exists && homes.is_home(walk.end)) return;
    const bool file = as == NamedPath::As::argument && walk.exists;
    const FileKind kind = file ? kind_of_file(walk.end) : FileKind::data;
    out.push_back({std::move(path), as, std::move(walk), kind});
  };
  for (const std::string &arg : policy.args) {
    add(arg, NamedPath::As::argument);
    if (const std::size_t at = arg.find("=/"); at != std::string::npos) {
      add(arg.substr(at + 1), NamedPath::As::argument);
    }
  }
  // A configured variable such as HOME may name the home directory, but that must not grant access
  // to the whole directory.
  for (const std::string &value : policy.env_values) {
    add(value, NamedPath::As::argument, false);
  }
  add(policy.cwd, NamedPath::As::folder);
  for (const std::string &path : policy.read) add(path, NamedPath::As::readable);
  for (const std::string &path : policy.write) add(path, NamedPath::As::writable);
  return out;
}

}  // namespace bulkhead
