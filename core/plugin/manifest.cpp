// Parses NAME.plugin.toml, which describes a library and is read before any of the library's code
// runs.

#include <algorithm>
#include <filesystem>

#include "bulkhead/cpp/text.hpp"
#include "plugin/loader.hpp"
#include "plugin/plugin_file.hpp"
#include "plugin/text.hpp"
#include "profile/toml.hpp"

namespace bulkhead {
namespace {

constexpr std::size_t max_manifest_bytes = 64 * 1024;
constexpr std::size_t max_provides = 64;
constexpr std::string_view suffix = ".plugin.toml";

std::unexpected<Error> bad(const std::string &path, const std::string &what) {
  return fail(BH_E_INVALID, path + ": " + what);
}

// Reads a string, or an integer from 0 to 2^32-1. Returns false if the key is missing, or its value
// has another type or is out of range.
bool take(const toml::table &table, const char *key, std::string *out) {
  const auto *value = table[key].as_string();
  if (value == nullptr) return false;
  *out = bh::one_line(value->get(), 1024);
  return true;
}
bool take(const toml::table &table, const char *key, std::uint32_t *out) {
  const auto *value = table[key].as_integer();
  if (value == nullptr || value->get() < 0 || value->get() > UINT32_MAX) return false;
  *out = static_cast<std::uint32_t>(value->get());
  return true;
}

// Reads an optional boolean. Returns false if the value has another type.
bool take_optional(const toml::table &table, const char *key, bool *out) {
  const auto value = table[key];
  if (!value) return true;
  if (value.as_boolean() == nullptr) return false;
  *out = value.as_boolean()->get();
  return true;
}

Result<Manifest> parse(const std::string &path, const std::string &text) {
  const toml::parse_result result = toml::parse(text, path);
  if (!result) {
    return bad(path + ":" + std::to_string(result.error().source().begin.line),
               bh::one_line(result.error().description(), 256));
  }
  const toml::table &table = result.table();
  Manifest manifest;
  if (!take(table, "id", &manifest.id) || !is_plain_name(manifest.id)) {
    return bad(path, "id must have 1 to 64 characters from a-z, 0-9 and '-'");
  }
  if (!take(table, "abi_major", &manifest.abi_major) ||
      !take(table, "abi_minor_needed", &manifest.abi_minor_needed)) {
    return bad(path, "abi_major and abi_minor_needed must be whole numbers");
  }
  take(table, "version", &manifest.version);
  take(table, "description", &manifest.description);
  if (!take_optional(table, "exclusive", &manifest.exclusive)) {
    return bad(path, "exclusive must be true or false");
  }
  const auto *provides = table["provides"].as_array();
  if (provides == nullptr || provides->empty() || provides->size() > max_provides) {
    return bad(path, "provides must list 1 to 64 extension ids, e.g. [\"bh.tools/1\"]");
  }
  for (const auto &item : *provides) {
    const auto *id = item.as_string();
    if (id == nullptr || id->get().empty()) return bad(path, "provides must contain only strings");
    manifest.provides.push_back(bh::one_line(id->get(), 128));
  }
  return manifest;
}

}  // namespace

Result<Manifest> read_manifest_in(int folder_fd, const std::string &folder,
                                  const std::string &name) {
  const std::string path = folder + "/" + name;
  struct stat status{};
  const auto fd = open_trusted_file(folder_fd, folder, name, &status);
  if (!fd) return std::unexpected(fd.error());
  const auto text = read_bounded(fd->get(), path, max_manifest_bytes);
  if (!text) return std::unexpected(text.error());
  try {
    auto manifest = parse(path, *text);
    if (manifest) manifest->sha256 = sha256_of_text(*text);
    return manifest;
  } catch (const profiles::UnexpectedToml &) {
    return bad(path, "is not valid TOML");
  }
}

Result<Manifest> read_manifest(const std::string &path) {
  const std::filesystem::path split(path);
  const std::string folder = split.has_parent_path() ? split.parent_path().string() : ".";
  const auto folder_fd = open_trusted_folder(folder);
  if (!folder_fd) return std::unexpected(folder_fd.error());
  return read_manifest_in(folder_fd->get(), folder, split.filename().string());
}

FoundPlugin describe_plugin(const std::string &path) {
  constexpr std::string_view library = ".so";
  std::string_view base = path;
  if (base.ends_with(library)) base.remove_suffix(library.size());
  const std::string stem(base.substr(base.find_last_of('/') + 1));
  FoundPlugin plugin;
  plugin.path = path;
  if (auto manifest = read_manifest(std::string(base) + std::string(suffix))) {
    std::error_code ec;
    plugin.manifest = std::move(*manifest);
    if (plugin.manifest.id != stem)
      plugin.error = "its manifest has id = \"" + plugin.manifest.id + "\"";
    if (!std::filesystem::exists(path, ec)) plugin.error = "the library is missing";
  } else {
    plugin.manifest.id = stem;
    plugin.error = manifest.error().text;
  }
  return plugin;
}

std::vector<FoundPlugin> list_plugins(const std::vector<std::string> &dirs) {
  std::vector<FoundPlugin> found;
  for (const std::string &dir : dirs) {
    std::vector<std::string> names;
    std::error_code ec;
    for (std::filesystem::directory_iterator it(dir, ec), end; !ec && it != end; it.increment(ec)) {
      const std::string name = it->path().filename().string();
      std::error_code unknown;
      if (name.size() > suffix.size() && name.ends_with(suffix))
        names.push_back(name.substr(0, name.size() - suffix.size()));
      else if (is_plain_name(name) &&
               std::filesystem::exists(it->path() / (name + std::string(suffix)), unknown))
        names.push_back(name + "/" + name);
    }
    std::sort(names.begin(), names.end());
    for (const std::string &name : names)
      found.push_back(describe_plugin(dir + "/" + name + ".so"));
  }
  return found;
}

}  // namespace bulkhead
