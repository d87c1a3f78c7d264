// Computes content hashes (BLAKE2b, 256 bits).
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace builtin_files {

using Hash = std::array<unsigned char, 32>;

class Hasher {
 public:
  Hasher() noexcept;
  void add(std::string_view bytes) noexcept;
  // Returns the hash. Must be called only once, after the last add().
  Hash end() noexcept;

 private:
  alignas(64) unsigned char state_[384];  // holds a crypto_generichash_state
};

Hash hash_of(std::string_view bytes) noexcept;
std::string hex(const Hash &hash);

// Hash function for hash tables. Uses the first bytes of the hash, which are uniformly distributed.
struct HashBytes {
  std::size_t operator()(const Hash &hash) const noexcept {
    std::size_t out = 0;
    std::memcpy(&out, hash.data(), sizeof out);
    return out;
  }
};

}  // namespace builtin_files
