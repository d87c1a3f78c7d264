#include "profile/sha256.hpp"

#include <sodium/crypto_hash_sha256.h>

#include "bulkhead/cpp/text.hpp"

namespace bulkhead {

std::string sha256_hex(std::string_view text) {
  unsigned char digest[crypto_hash_sha256_BYTES];
  crypto_hash_sha256(digest, reinterpret_cast<const unsigned char *>(text.data()), text.size());
  return bh::hex({reinterpret_cast<const char *>(digest), sizeof digest});
}

}  // namespace bulkhead
