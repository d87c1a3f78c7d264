#include "sources/project_file.hpp"

#include <sys/stat.h>

#include <filesystem>

#include "common/paths.hpp"

namespace bulkhead::program {
namespace {

// Resolves symbolic links in the directory part of the path. The file name is kept even if the file
// is a link, because the target may be in another directory.
std::string absolute(const std::string &path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path whole = fs::absolute(path, error);
  if (error) return path;
  const fs::path folder = fs::weakly_canonical(whole.parent_path(), error);
  return error ? whole.lexically_normal().string() : (folder / whole.filename()).string();
}

bool same_file(const struct stat &info, const std::string &path) {
  struct stat other{};
  return !path.empty() && ::stat(path.c_str(), &other) == 0 && other.st_dev == info.st_dev &&
         other.st_ino == info.st_ino;
}

}  // namespace

std::string project_file(const Arguments &arguments) {
  if (arguments.no_project) return "";
  if (!arguments.project.empty()) return absolute(arguments.project);
  for (const char *name : {".bulkhead.toml", ".mcp.json"}) {
    struct stat info{};
    if (::stat(name, &info) != 0) continue;
    // A file named by --config does not count as a project file.
    return same_file(info, arguments.config) ? "" : absolute(name);
  }
  return "";
}

}  // namespace bulkhead::program
