// Signatures in minisign's format: Ed25519 over the bytes ("Ed") or over their BLAKE2b-512 ("ED",
// the current default), and a second signature over the first one and the trusted comment.
//
// Thread: any. Texts are bounded by their readers.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace bulkhead {

inline constexpr std::size_t kMinisignBytes = 16 * 1024;  // a signature, or a file of keys
inline constexpr std::size_t kMinisignKeys = 8;

struct MinisignKey {
  std::array<std::uint8_t, 8> id;
  std::array<std::uint8_t, 32> key;
};

// The keys of a text: a line in base64 each (minisign's *.pub), lines that begin with "untrusted
// comment:" and empty lines are skipped. An error: an invalid line, no key, or too many.
Result<std::vector<MinisignKey>> read_minisign_keys(std::string_view text);

// The trusted comment, if the signature is valid for these bytes and one of the keys.
// BH_E_INVALID: not a signature; BH_E_DENIED: of other bytes or by another key.
Result<std::string> verify_minisign(std::string_view bytes, std::string_view signature,
                                    const std::vector<MinisignKey> &keys);

}  // namespace bulkhead
