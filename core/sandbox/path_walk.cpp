#include "sandbox/path_walk.hpp"

#include <unistd.h>

#include <cerrno>
#include <climits>

#include "sandbox/paths.hpp"

namespace bulkhead {
namespace {

// Adds the components of `path` to a stack, the first one on top.
void push_components(const std::string &path, std::vector<std::string> *stack) {
  for (std::size_t end = path.size(); end > 0;) {
    const std::size_t slash = path.rfind('/', end - 1);
    const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
    const std::string name = path.substr(begin, end - begin);
    if (!name.empty() && name != ".") stack->push_back(name);
    end = slash == std::string::npos ? 0 : slash;
  }
}

}  // namespace

PathWalk walk_path(const std::string &path) {
  PathWalk walk;
  std::vector<std::string> rest;
  push_components(path, &rest);
  std::string at = "/";
  bool missing = false;
  while (!rest.empty()) {
    const std::string name = std::move(rest.back());
    rest.pop_back();
    if (name == "..") {
      at = parent_of(at);
      continue;
    }
    at = joined(at, name);
    if (missing) continue;
    char target[PATH_MAX];
    const ssize_t size = ::readlink(at.c_str(), target, sizeof target);
    if (size < 0) {
      const int error = errno;
      missing = error != EINVAL;  // EINVAL: the path exists and is not a link
      if (missing && !means_missing(error)) walk.closed = parent_of(at);
      continue;
    }
    std::string text(target, static_cast<std::size_t>(size));
    walk.links.push_back({at, text, rest.empty()});
    if (walk.links.size() > PathWalk::most_links) {
      missing = true;
      continue;
    }
    push_components(text, &rest);
    at = target[0] == '/' ? "/" : parent_of(at);
  }
  walk.end = std::move(at);
  walk.exists = !missing;
  return walk;
}

}  // namespace bulkhead
