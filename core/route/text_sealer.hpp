// Encryption and authentication of state that clients store: XChaCha20-Poly1305 with a random
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
  // A key for one run of the process: what it seals opens with this object only.
  static TextSealer with_random_key();
  // A key derived from this one. Texts of different purposes never open with each other's keys.
  // Requires usable().
  TextSealer for_purpose(const char (&purpose)[9]) const;

  bool usable() const noexcept { return key_.size() == key_bytes; }

  // `context` is authenticated together with the text and is not part of it. Requires usable().
  std::string seal(std::string_view plain, std::string_view context) const;
  // Returns nothing if the text is forged, damaged, longer than that of max_plain bytes, or was
  // sealed with another key or context. Requires usable().
  std::optional<std::string> open(std::string_view sealed, std::string_view context,
                                  std::size_t max_plain) const;

 private:
  const std::string key_;
};

}  // namespace bulkhead
