// Verifies signatures in minisign's format. A signature file contains an Ed25519 signature of the
// bytes ("Ed") or of their BLAKE2b-512 hash ("ED", the current default), and a second signature,
// which covers the first signature and the trusted comment.
//
// Thread-safe. Callers must limit the size of the input.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace bulkhead {

// Maximum size of a signature file or a key file.
inline constexpr std::size_t kMinisignBytes = 16 * 1024;
inline constexpr std::size_t kMinisignKeys = 8;

struct MinisignKey {
  std::array<std::uint8_t, 8> id;
  std::array<std::uint8_t, 32> key;
};

// Reads public keys from a minisign *.pub file, which contains one base64 line per key. Empty lines
// and lines that start with "untrusted comment:" are skipped. Returns BH_E_INVALID if a line is
// invalid, if the text is too long, or if there are no keys or too many.
Result<std::vector<MinisignKey>> read_minisign_keys(std::string_view text);

// Returns the key's ID as minisign displays it: 16 uppercase hexadecimal digits. The owner of a key
// can choose its ID, so the ID alone does not identify a key.
std::string minisign_key_id(const MinisignKey &key);

// Returns the ID of the key with which the signature claims to be made, without verifying it.
// Returns BH_E_INVALID if the text is not a signature.
Result<std::string> claimed_minisign_key_id(std::string_view signature);

// Verifies that one of the keys signed `bytes`, and returns the trusted comment. Returns
// BH_E_INVALID if the text is not a signature. Returns BH_E_DENIED if the signature is for other
// bytes or was made with another key, or if the trusted comment was changed.
Result<std::string> verify_minisign(std::string_view bytes, std::string_view signature,
                                    const std::vector<MinisignKey> &keys);

}  // namespace bulkhead
