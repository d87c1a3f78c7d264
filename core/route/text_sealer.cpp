#include "route/text_sealer.hpp"

#include <sodium.h>

#include "base/base64.hpp"

namespace bulkhead {
namespace {

constexpr std::size_t nonce_bytes = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES;
constexpr std::size_t tag_bytes = crypto_aead_xchacha20poly1305_ietf_ABYTES;
constexpr int encoding = sodium_base64_VARIANT_URLSAFE_NO_PADDING;
static_assert(TextSealer::key_bytes == crypto_aead_xchacha20poly1305_ietf_KEYBYTES);
static_assert(TextSealer::key_bytes == crypto_kdf_KEYBYTES);

const unsigned char *bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char *>(text.data());
}
unsigned char *bytes_of(std::string &text) {
  return reinterpret_cast<unsigned char *>(text.data());
}

}  // namespace

TextSealer TextSealer::with_random_key() {
  std::string key(key_bytes, '\0');
  randombytes_buf(key.data(), key.size());
  return TextSealer(std::move(key));
}

TextSealer TextSealer::for_purpose(const char (&purpose)[9]) const {
  static_assert(sizeof purpose == crypto_kdf_CONTEXTBYTES + 1);
  std::string key(key_bytes, '\0');
  crypto_kdf_derive_from_key(bytes_of(key), key.size(), 1, purpose, bytes_of(key_));
  return TextSealer(std::move(key));
}

std::string TextSealer::seal(std::string_view plain, std::string_view context) const {
  std::string whole(nonce_bytes + plain.size() + tag_bytes, '\0');
  unsigned char *const nonce = bytes_of(whole);
  randombytes_buf(nonce, nonce_bytes);
  crypto_aead_xchacha20poly1305_ietf_encrypt(nonce + nonce_bytes, nullptr, bytes_of(plain),
                                             plain.size(), bytes_of(context), context.size(),
                                             nullptr, nonce, bytes_of(key_));
  std::string text(sodium_base64_encoded_len(whole.size(), encoding), '\0');
  sodium_bin2base64(text.data(), text.size(), bytes_of(whole), whole.size(), encoding);
  text.pop_back();  // the terminating zero
  return text;
}

std::optional<std::string> TextSealer::open(std::string_view sealed, std::string_view context,
                                            std::size_t max_plain) const {
  const std::size_t max_whole = nonce_bytes + max_plain + tag_bytes;
  if (sealed.size() >= sodium_base64_encoded_len(max_whole + 1, encoding)) return std::nullopt;
  std::string whole;
  if (!decode_base64(sealed, encoding, &whole) || whole.size() < nonce_bytes + tag_bytes ||
      whole.size() > max_whole) {
    return std::nullopt;
  }
  std::string plain(whole.size() - nonce_bytes - tag_bytes, '\0');
  if (crypto_aead_xchacha20poly1305_ietf_decrypt(
          bytes_of(plain), nullptr, nullptr, bytes_of(whole) + nonce_bytes,
          whole.size() - nonce_bytes, bytes_of(context), context.size(), bytes_of(whole),
          bytes_of(key_)) != 0) {
    return std::nullopt;
  }
  return plain;
}

}  // namespace bulkhead
