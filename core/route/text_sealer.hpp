// Encrypts and authenticates state that clients store, using XChaCha20-Poly1305 with a random
// nonce. The result is base64url text without padding.
//
// Thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace bulkhead {

class TextSealer {
 public:
  static constexpr std::size_t key_bytes = 32;

  explicit TextSealer(std::string key) : key_(std::move(key)) {}
  // Returns a sealer with a random key. Only this object can open what it seals, so the sealed text
  // does not outlive the process.
  static TextSealer with_random_key();
  // Returns a sealer whose key is derived from this sealer's key. Text that was sealed for one
  // purpose cannot be opened with the key for another purpose. Requires usable().
  TextSealer for_purpose(const char (&purpose)[9]) const;

  bool usable() const noexcept { return key_.size() == key_bytes; }

  // `context` is authenticated together with the text, but is not included in the result. Requires
  // usable().
  std::string seal(std::string_view plain, std::string_view context) const;
  // Returns nullopt if the text is forged or damaged, was sealed with another key or context, or
  // contains more than max_plain bytes of plain text. Requires usable().
  std::optional<std::string> open(std::string_view sealed, std::string_view context,
                                  std::size_t max_plain) const;

 private:
  const std::string key_;
};

}  // namespace bulkhead
