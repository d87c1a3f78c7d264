#include "builtin-files/glob.hpp"

#include <bulkhead/cpp/text.hpp>

#include <string>
#include <vector>

namespace builtin_files {
namespace {

constexpr std::size_t max_bytes = 4096;

// Matches `c` against the character class at pattern[*p], such as [abc], [a-z] or [!abc], and
// advances *p past the class. If the class has no "]", matches a literal "[".
bool class_matches(std::string_view pattern, std::size_t *p, char c) {
  const std::size_t close = pattern.find(']', *p + 2);
  if (close == pattern.npos) return pattern[(*p)++] == c;
  std::string_view set = pattern.substr(*p + 1, close - *p - 1);
  *p = close + 1;
  const bool negated = set.front() == '!' || set.front() == '^';
  if (negated) set.remove_prefix(1);
  bool found = false;
  const auto byte = [](char x) { return static_cast<unsigned char>(x); };
  for (std::size_t i = 0; i < set.size(); ++i) {
    const bool is_range = i + 2 < set.size() && set[i + 1] == '-';
    const char last = is_range ? set[i + 2] : set[i];
    found = found || (byte(c) >= byte(set[i]) && byte(c) <= byte(last));
    if (is_range) i += 2;
  }
  return found != negated;
}

// Matches one path component. Backtracks only to the last `*`, so the run time is at most
// proportional to the product of the two lengths.
bool component_matches(std::string_view pattern, std::string_view name) {
  std::size_t p = 0;
  std::size_t n = 0;
  std::size_t star = pattern.npos;
  std::size_t from = 0;
  while (n < name.size()) {
    std::size_t behind = p;
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = n;
    } else if (p < pattern.size() && pattern[p] == '[' &&
               class_matches(pattern, &behind, name[n])) {
      p = behind;
      ++n;
    } else if (p < pattern.size() && pattern[p] != '[' &&
               (pattern[p] == '?' || pattern[p] == name[n])) {
      // `?` matches a whole UTF-8 character.
      const bool any = pattern[p] == '?';
      ++p;
      ++n;
      while (any && n < name.size() && bh::is_utf8_tail(name[n])) ++n;
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
  // reached[i] is true if the pattern components processed so far match the first i path
  // components.
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
