#include "builtin-files/snapshots/hash.hpp"

#include <bulkhead/cpp/text.hpp>

#include <sodium.h>

namespace builtin_files {
namespace {

static_assert(sizeof(crypto_generichash_state) <= 384);

crypto_generichash_state *state_of(unsigned char *bytes) {
  return reinterpret_cast<crypto_generichash_state *>(bytes);
}
const unsigned char *bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char *>(text.data());
}

}  // namespace

Hasher::Hasher() noexcept {
  crypto_generichash_init(state_of(state_), nullptr, 0, sizeof(Hash));
}

void Hasher::add(std::string_view bytes) noexcept {
  crypto_generichash_update(state_of(state_), bytes_of(bytes), bytes.size());
}

Hash Hasher::end() noexcept {
  Hash out{};
  crypto_generichash_final(state_of(state_), out.data(), out.size());
  return out;
}

Hash hash_of(std::string_view bytes) noexcept {
  Hash out{};
  crypto_generichash(out.data(), out.size(), bytes_of(bytes), bytes.size(), nullptr, 0);
  return out;
}

std::string hex(const Hash &hash) {
  return bh::hex({reinterpret_cast<const char *>(hash.data()), hash.size()});
}

}  // namespace builtin_files
