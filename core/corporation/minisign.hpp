// Signatures in minisign's format: Ed25519 over the bytes ("Ed") or over their BLAKE2b-512 ("ED",
// what minisign makes today), and a second one over the first and the trusted comment.
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
// comment:" and empty ones are left out. An error: one that is none, none at all, or too many.
Result<std::vector<MinisignKey>> read_minisign_keys(std::string_view text);

// The trusted comment, if one of the keys has made this signature of exactly these bytes.
// BH_E_INVALID: it is no signature; BH_E_DENIED: it is not of these bytes or not by these keys.
Result<std::string> verify_minisign(std::string_view bytes, std::string_view signature,
                                    const std::vector<MinisignKey> &keys);

}  // namespace bulkhead
