// Copies packages of the user's npm cache to the private cache of a server that npx starts.
//
// Only content is copied, by digest: the tarballs that npx installed for this package, each of
// which must match the SHA-512 in its name. npm uses such a file only if the registry's current
// answer names this digest, and verifies it again. No index (which maps addresses to content), no
// installed package and no configuration is copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "profile/profile.hpp"

namespace bulkhead::program {

struct NpmCopied {
  std::size_t packages = 0;
  std::uint64_t bytes = 0;
};

// Limits per server; npm downloads the rest.
inline constexpr std::size_t most_npm_packages = 2'000;
inline constexpr std::uint64_t most_npm_package_bytes = 64u << 20, most_npm_bytes = 512u << 20;

// The package that this command line runs with npx, without version: "@scope/name". Empty: not npx,
// or no package.
std::string npx_package(const ServerDef &definition);

// `cache`: the user's npm cache (~/.npm); `folder`: the server's cache folder (cache/SERVER in the
// state folder), which must exist. Follows no link in `folder`, which the server can write. Skips
// files that are unreadable, do not match their name or exist already. Thread: any; blocks for
// files.
NpmCopied copy_npm_packages(const std::string &package, const std::string &cache,
                            const std::string &folder);

}  // namespace bulkhead::program
