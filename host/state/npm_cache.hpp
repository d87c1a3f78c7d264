// Copies packages from the user's npm cache to the private cache of a server that npx starts.
//
// Only content is copied, by digest: the tarballs that npx installed for this package. Each must
// match the SHA-512 in its name. npm uses such a file only if the registry's current response
// contains this digest, and verifies it again. The index (which maps URLs to content), installed
// packages and configuration are not copied.
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

// Limits per server; npm downloads packages beyond them.
inline constexpr std::size_t most_npm_packages = 2'000;
inline constexpr std::uint64_t most_npm_package_bytes = 64u << 20, most_npm_bytes = 512u << 20;

// Returns the package that this command line runs with npx, without the version: "@scope/name".
// Returns an empty string if the command line does not use npx or names no package.
std::string npx_package(const ServerDef &definition);

// `cache` is the user's npm cache (~/.npm). `folder` is the server's cache folder (cache/SERVER in
// the state folder), which must exist. Links in `folder` are not followed, because the server can
// write to it. Files that are unreadable, do not match their name or already exist are skipped.
// Thread-safe; blocks for file access.
NpmCopied copy_npm_packages(const std::string &package, const std::string &cache,
                            const std::string &folder);

}  // namespace bulkhead::program
