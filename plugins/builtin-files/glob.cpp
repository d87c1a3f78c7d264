#include "builtin-files/glob.hpp"

#include <string>
#include <vector>

namespace builtin_files {
namespace {

constexpr std::size_t max_bytes = 4096;

// One component; goes back only to the last `*`, so its time is bounded by the product of lengths.
bool component_matches(std::string_view pattern, std::string_view name) {
  std::size_t p = 0;
  std::size_t n = 0;
  std::size_t star = pattern.npos;
  std::size_t from = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      // `?` stands for a character, not for a byte.
      const bool any = pattern[p] == '?';
      ++p;
      ++n;
      while (any && n < name.size() && (static_cast<unsigned char>(name[n]) & 0xC0) == 0x80) ++n;
    } else if (star != pattern.npos) {
      p = star + 1;
      n = ++from;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::vector<std::string_view> components(std::string_view path) {
  std::vector<std::string_view> out;
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    if (slash != 0) out.push_back(path.substr(0, slash));
    if (slash == path.npos) break;
    path.remove_prefix(slash + 1);
  }
  return out;
}

}  // namespace

bool glob_matches(std::string_view pattern, std::string_view path) {
  if (pattern.size() > max_bytes || path.size() > max_bytes) return false;
  const std::vector<std::string_view> names = components(path);
  if (pattern.find('/') == pattern.npos && pattern != "**") {
    return !names.empty() && component_matches(pattern, names.back());
  }
  const std::vector<std::string_view> patterns = components(pattern);
  // reached[i]: the patterns so far match the first i names.
  std::vector<bool> reached(names.size() + 1, false);
  reached[0] = true;
  for (const std::string_view p : patterns) {
    std::vector<bool> next(names.size() + 1, false);
    for (std::size_t i = 0; i <= names.size(); ++i) {
      if (p == "**") {
        next[i] = reached[i] || (i > 0 && next[i - 1]);
      } else if (i > 0 && reached[i - 1]) {
        next[i] = component_matches(p, names[i - 1]);
      }
    }
    reached.swap(next);
  }
  return reached.back();
}

}  // namespace builtin_files
