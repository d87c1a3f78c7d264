// Creates minisign signatures with a generated key. For tests only.
#pragma once

#include <sodium.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace bulkhead::test {

class Signer {
 public:
  Signer() {
    if (::sodium_init() < 0) std::abort();
    crypto_sign_keypair(public_, secret_);
    randombytes_buf(id_, sizeof id_);
  }

  // Returns two lines, as in minisign's *.pub files.
  std::string public_key() const {
    return "untrusted comment: a test's key\n" + base64("Ed" + id() + bytes(public_, 32)) + "\n";
  }

  std::string sign(std::string_view text, std::string_view trusted_comment, bool prehashed) const {
    std::string signature;
    if (prehashed) {
      std::uint8_t hash[64];
      crypto_generichash(hash, sizeof hash, reinterpret_cast<const std::uint8_t *>(text.data()),
                         text.size(), nullptr, 0);
      signature = raw(bytes(hash, sizeof hash));
    } else {
      signature = raw(text);
    }
    return "untrusted comment: whatever\n" + base64((prehashed ? "ED" : "Ed") + id() + signature) +
           "\ntrusted comment: " + std::string(trusted_comment) + "\n" +
           base64(raw(signature + std::string(trusted_comment))) + "\n";
  }

  void take_id_of(const Signer &other) {
    for (std::size_t i = 0; i < sizeof id_; ++i) id_[i] = other.id_[i];
  }

 private:
  static std::string bytes(const std::uint8_t *data, std::size_t n) {
    return {reinterpret_cast<const char *>(data), n};
  }
  std::string id() const { return bytes(id_, sizeof id_); }
  std::string raw(std::string_view text) const {
    std::uint8_t out[crypto_sign_BYTES];
    crypto_sign_detached(out, nullptr, reinterpret_cast<const std::uint8_t *>(text.data()),
                         text.size(), secret_);
    return bytes(out, sizeof out);
  }
  static std::string base64(const std::string &data) {
    std::string out(sodium_base64_encoded_len(data.size(), sodium_base64_VARIANT_ORIGINAL), '\0');
    sodium_bin2base64(out.data(), out.size(), reinterpret_cast<const std::uint8_t *>(data.data()),
                      data.size(), sodium_base64_VARIANT_ORIGINAL);
    out.pop_back();  // removes the terminating NUL
    return out;
  }

  std::uint8_t public_[crypto_sign_PUBLICKEYBYTES], secret_[crypto_sign_SECRETKEYBYTES], id_[8];
};

}  // namespace bulkhead::test
