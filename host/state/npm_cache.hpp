// Copies packages from the user's npm cache to the private cache of a server that is started with
// npx.
//
// Only the tarballs that npx installed for the server's package are copied. A tarball is copied
// only if its content matches the SHA-512 digest in its name. npm uses such a tarball only if the
// registry's current response contains the same digest, and verifies the digest again. The cache
// index (which maps URLs to content), the installed packages and the npm configuration are not
// copied.
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

// Limits per server. Packages beyond these limits are not copied; npm downloads them.
inline constexpr std::size_t most_npm_packages = 2'000;
inline constexpr std::uint64_t most_npm_package_bytes = 64u << 20, most_npm_bytes = 512u << 20;

// Returns the name of the package that the server's command line runs with npx, without the
// version, for example "@scope/name". Returns an empty string if the command line does not use npx
// or names no package.
std::string npx_package(const ServerDef &definition);

// Copies the package and its dependencies from `cache`, the user's npm cache (~/.npm), to `folder`,
// the server's existing cache directory (cache_folder.hpp). Does not follow symbolic links in
// `folder`, because the server can write to it. Skips files that cannot be read, do not match their
// digest or already exist.
//
// Thread-safe. Blocks for file access.
NpmCopied copy_npm_packages(const std::string &package, const std::string &cache,
                            const std::string &folder);

}  // namespace bulkhead::program
