#include "builtin-files/ignore.hpp"

#include "builtin-files/glob.hpp"

namespace builtin_files {
namespace {

constexpr std::size_t max_rules = 1000;

std::string_view without_trailing_space(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  while (line.ends_with(' ') && !line.ends_with("\\ ")) line.remove_suffix(1);
  return line;
}

}  // namespace

IgnoreRules IgnoreRules::parse(std::string_view text) {
  IgnoreRules out;
  while (!text.empty() && out.rules_.size() < max_rules) {
    const std::size_t end = text.find('\n');
    std::string_view line = without_trailing_space(text.substr(0, end));
    text = end == text.npos ? std::string_view() : text.substr(end + 1);
    if (line.empty() || line.front() == '#') continue;
    const bool keeps = line.front() == '!';
    if (keeps) line.remove_prefix(1);
    if (line.starts_with("\\#") || line.starts_with("\\!")) line.remove_prefix(1);
    const bool folders_only = line.ends_with('/');
    if (folders_only) line.remove_suffix(1);
    if (line.empty()) continue;
    // A rule with a slash before its last character is relative to this folder and must match the
    // whole path. glob_matches() matches the whole path only if the pattern contains a slash, so
    // "./" replaces the leading slash if there is no other one.
    std::string glob(line.front() == '/' ? line.substr(1) : line);
    if (line.front() == '/' && glob.find('/') == glob.npos) glob.insert(0, "./");
    out.rules_.push_back({std::move(glob), keeps, folders_only});
  }
  return out;
}

IgnoreRules::Verdict IgnoreRules::judge(std::string_view path, bool is_folder) const {
  const std::string anchored = "./" + std::string(path);
  for (auto rule = rules_.rbegin(); rule != rules_.rend(); ++rule) {
    if (rule->folders_only && !is_folder) continue;
    const bool from_here = rule->glob.starts_with("./");
    if (!glob_matches(rule->glob, from_here ? std::string_view(anchored) : path)) continue;
    return rule->keeps ? Verdict::kept : Verdict::ignored;
  }
  return Verdict::none;
}

}  // namespace builtin_files
