#include "sandbox/program_files.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "sandbox/paths.hpp"

namespace bulkhead {

bool is_code(const std::string &path) {
  static constexpr std::string_view endings[] = {".js",  ".mjs", ".cjs", ".ts",  ".py",
                                                 ".rb",  ".sh",  ".jar", ".php", ".pl",
                                                 ".lua", ".dll", ".so"};
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return false;
  if ((info.st_mode & 0111) != 0) return true;
  return std::any_of(std::begin(endings), std::end(endings),
                     [&](std::string_view ending) { return path.ends_with(ending); });
}

std::string code_root(const std::string &file, const std::vector<std::string> &homes) {
  static constexpr std::string_view modules = "/node_modules/";
  if (const std::size_t at = file.find(modules); at != std::string::npos) {
    return file.substr(0, at + modules.size() - 1);
  }
  std::string folder = parent_of(file);
  if (base_of(folder) == "bin" && !holds_any(parent_of(folder), homes) &&
      base_of(parent_of(folder)) != ".local") {
    return parent_of(folder);
  }
  std::string at = folder;
  for (int up = 0; up < 8 && at != "/" && !holds_any(at, homes); ++up) {
    for (const char *mark : {"package.json", "pyproject.toml", "node_modules", "pyvenv.cfg"}) {
      if (exists(joined(at, mark))) return at;
    }
    at = parent_of(at);
  }
  return folder;
}

}  // namespace bulkhead
