// Content hashes (BLAKE2b, 256 bits).
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
  // Must be called once, at the end.
  Hash end() noexcept;

 private:
  alignas(64) unsigned char state_[384];  // crypto_generichash_state
};

Hash hash_of(std::string_view bytes) noexcept;
std::string hex(const Hash &hash);

// A hash function for tables; the bytes are already uniformly distributed.
struct HashBytes {
  std::size_t operator()(const Hash &hash) const noexcept {
    std::size_t out = 0;
    std::memcpy(&out, hash.data(), sizeof out);
    return out;
  }
};

}  // namespace builtin_files
