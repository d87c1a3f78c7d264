#include "profile/sha256.hpp"

#include <sodium/crypto_hash_sha256.h>

namespace bulkhead {

std::string sha256_hex(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  unsigned char digest[crypto_hash_sha256_BYTES];
  crypto_hash_sha256(digest, reinterpret_cast<const unsigned char *>(text.data()), text.size());
  std::string out;
  for (const unsigned char byte : digest) {
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
  return out;
}

}  // namespace bulkhead
