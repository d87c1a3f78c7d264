#include "embed/seal.hpp"

#include <sodium.h>

#include <array>
#include <cstring>

namespace bulkhead {
namespace {

constexpr unsigned char version = 2;
constexpr std::size_t nonce_bytes = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES;
constexpr std::size_t tag_bytes = crypto_aead_xchacha20poly1305_ietf_ABYTES;
constexpr std::size_t plain_bytes = 1 + sizeof(std::uint32_t) * 2 + 1 + sizeof(std::uint64_t);
constexpr std::size_t whole_bytes = nonce_bytes + plain_bytes + tag_bytes;
constexpr int encoding = sodium_base64_VARIANT_URLSAFE_NO_PADDING;
static_assert(Sealer::key_bytes == crypto_aead_xchacha20poly1305_ietf_KEYBYTES);

const unsigned char *bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char *>(text.data());
}

}  // namespace

std::string Sealer::seal(const SealedSession &session, std::string_view context) const {
  std::array<unsigned char, plain_bytes> plain;
  plain[0] = version;
  std::memcpy(&plain[1], &session.epoch, sizeof session.epoch);
  std::memcpy(&plain[5], &session.caps, sizeof session.caps);
  plain[9] = session.revision;
  std::memcpy(&plain[10], &session.since_ns, sizeof session.since_ns);
  std::array<unsigned char, whole_bytes> whole;
  randombytes_buf(whole.data(), nonce_bytes);
  crypto_aead_xchacha20poly1305_ietf_encrypt(whole.data() + nonce_bytes, nullptr, plain.data(),
                                             plain.size(), bytes_of(context), context.size(),
                                             nullptr, whole.data(), bytes_of(key_));
  char text[sodium_base64_ENCODED_LEN(whole_bytes, encoding)];
  sodium_bin2base64(text, sizeof text, whole.data(), whole.size(), encoding);
  return text;
}

std::optional<SealedSession> Sealer::open(std::string_view sealed, std::string_view context) const {
  std::array<unsigned char, whole_bytes> whole;
  std::size_t size = 0;
  if (sodium_base642bin(whole.data(), whole.size(), sealed.data(), sealed.size(), nullptr, &size,
                        nullptr, encoding) != 0 ||
      size != whole.size()) {
    return std::nullopt;
  }
  std::array<unsigned char, plain_bytes> plain;
  if (crypto_aead_xchacha20poly1305_ietf_decrypt(
          plain.data(), nullptr, nullptr, whole.data() + nonce_bytes, whole.size() - nonce_bytes,
          bytes_of(context), context.size(), whole.data(), bytes_of(key_)) != 0 ||
      plain[0] != version) {
    return std::nullopt;
  }
  SealedSession session;
  std::memcpy(&session.epoch, &plain[1], sizeof session.epoch);
  std::memcpy(&session.caps, &plain[5], sizeof session.caps);
  session.revision = plain[9];
  std::memcpy(&session.since_ns, &plain[10], sizeof session.since_ns);
  return session;
}

}  // namespace bulkhead
