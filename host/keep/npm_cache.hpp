// Packages that the user's npm cache has, for the private cache of a server that npx starts.
//
// Only content is copied, by digest: the tarballs that npx once installed for this package, each of
// which must have the SHA-512 that its name says. npm takes such a file only where the registry's
// answer of that moment asks for this very digest, and checks it again. Nothing else of the cache
// is copied: no index (which says what belongs to an address), no installed package, no
// configuration.
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

// At most this much is copied for one server; what is more is left to npm.
inline constexpr std::size_t most_npm_packages = 2'000;
inline constexpr std::uint64_t most_npm_package_bytes = 64u << 20, most_npm_bytes = 512u << 20;

// The package that this command line has npx run, without its version: "@scope/name". Empty: it is
// no npx, or names none.
std::string npx_package(const ServerDef &definition);

// `cache`: the user's (~/.npm); `folder`: that of the server's caches (cache/SERVER in the state
// folder), which must exist. Follows no link in `folder`, which the server may write. What cannot
// be read, is not what its name says or is there already is left out. Thread: any; blocks for
// files.
NpmCopied copy_npm_packages(const std::string &package, const std::string &cache,
                            const std::string &folder);

}  // namespace bulkhead::program
