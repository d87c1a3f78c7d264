// Reads the keys of a server that configure MCP roots.
#include <filesystem>
#include <utility>

#include "profile/server_reader.hpp"

namespace bulkhead {
namespace profiles {
namespace {

constexpr std::size_t kRootFolders = 100;

constexpr Word kRoots[] = {{"off", static_cast<int>(RootsMode::off)},
                           {"static", static_cast<int>(RootsMode::static_list)},
                           {"per-client", static_cast<int>(RootsMode::per_client)}};

}  // namespace

void ServerReader::read_roots(const Member &roots) {
  if (const auto value = diagnostics_.one_of(roots.value, at(roots), kRoots))
    server_.roots = static_cast<RootsMode>(*value);
}

void ServerReader::read_root_folders(const Member &folders) {
  const auto texts = diagnostics_.strings(folders.value, at(folders));
  if (!texts || !within_limit(folders, texts->size(), kRootFolders)) return;
  const std::string &home = context_.environment.home;
  for (std::size_t i = 0; i < texts->size(); ++i) {
    const std::string &text = (*texts)[i];
    const bool in_home = !home.empty() && (text == "~" || text.starts_with("~/"));
    if ((!in_home && !text.starts_with('/')) || text.find('\0') != std::string::npos) {
      diagnostics_.error(
          folders.value.items[i].place, at(folders) + '[' + std::to_string(i) + ']',
          in_quotes(text) + " is neither an absolute path nor a path that begins with ~/");
      continue;
    }
    std::string path = in_home ? home + text.substr(1) : text;
    path = std::filesystem::path(std::move(path)).lexically_normal().string();
    if (path.size() > 1 && path.ends_with('/')) path.pop_back();
    server_.root_folders.push_back(std::move(path));
  }
}

// Checks that root_folders is set if roots is "static", and only then.
void ServerReader::check_roots() {
  const Member *folders = find("root_folders");
  const Member *roots = find("roots");
  const bool fixed = server_.roots == RootsMode::static_list;
  if (fixed && folders == nullptr)
    reject(*roots, "\"static\" requires \"root_folders\", the roots that the server receives");
  if (!fixed && folders != nullptr && (roots == nullptr || server_.roots.has_value()))
    reject(*folders, "requires roots = \"static\"");
}

}  // namespace profiles

std::string_view to_string(RootsMode mode) noexcept {
  return profiles::word_of(profiles::kRoots, static_cast<int>(mode));
}

}  // namespace bulkhead
