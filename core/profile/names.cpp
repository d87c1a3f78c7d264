// Validates names of servers and plugin instances, and resolves paths.
#include <filesystem>

#include "bulkhead/cpp/text.hpp"
#include "profile/sections.hpp"

namespace bulkhead::profiles {

std::string resolve_path(const std::string &path, const Place &place, const Context &context) {
  if (path.starts_with("~/")) return context.environment.home + path.substr(1);
  if (path.starts_with('/')) return path;
  const std::string file = context.diagnostics.origin(place).file;
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  if (folder.empty()) return path;
  return (folder / path).lexically_normal().string();
}

std::string refused_name(std::string_view name, const Naming &naming, bool builtin_too) {
  if (name.empty()) return "its name is empty";
  if (name.size() > 64) return "its name is longer than 64 characters";
  for (const char c : name)
    if (!bh::is_letter_or_digit(c) && c != '_' && c != '-' && c != '.')
      return "its name may contain only letters, digits, '_', '-' and '.'";
  // The name is used as the name of a cache folder and as a command-line argument.
  if (name[0] == '.' || name[0] == '-') return "its name must not begin with '.' or '-'";
  if (name == "builtin" && !builtin_too) return "the name \"builtin\" is reserved";
  if (naming.prefix) {
    const std::size_t at = (std::string(name) + naming.separator).find(naming.separator);
    if (at + naming.separator.size() <= name.size())
      return "its name contains the separator " + in_quotes(naming.separator);
    if (at < name.size())
      return "its name ends with a prefix of the separator " + in_quotes(naming.separator);
  }
  if (!naming.strict_names) return {};
  bool good = name[0] >= 'a' && name[0] <= 'z';
  for (const char c : name) good = good && ((c >= 'a' && c <= 'z') || bh::is_digit(c) || c == '-');
  if (!good)
    return "strict names must be a lower-case letter followed by lower-case letters, digits and "
           "'-'";
  for (const std::string_view taken : {"fs-read", "fs-write", "fetch", "mcp"})
    if (name == taken) return "the name " + in_quotes(name) + " is reserved (strict names)";
  return {};
}

}  // namespace bulkhead::profiles
