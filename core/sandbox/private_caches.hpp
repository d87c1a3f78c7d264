// Lists the cache folders of which each server has a private version.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead {

// Cache folders in the home directory. Each server has private caches so that it cannot plant a
// program in another server's cache. `own` is the name of the private cache. `kept` lists the parts
// of the original folder that remain readable ("*": all of its folders).
struct PrivateCache {
  std::string_view at, own;
  std::array<std::string_view, 3> kept;
};
inline constexpr PrivateCache private_caches[] = {
    {".npm", "npm", {}},
    {".cache", "cache", {"ms-playwright", "puppeteer", "huggingface/hub"}},
    {".local/share/uv/tools", "uv-tools", {"*", {}, {}}},
    {".bun/install/cache", "bun", {}},
    {".mcp-auth", "mcp-auth", {}},
    {".config/configstore", "configstore", {}},
};

// Returns the folders in the original cache at `at` that remain readable, at most 64 of them.
std::vector<std::string> kept_folders(const PrivateCache &cache, const std::string &at);

}  // namespace bulkhead
