// Strict base64 decoding with libsodium. Thread-safe.
#pragma once

#include <sodium.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace bulkhead {

// Decodes all of `text` into *out. Returns false if `text` is not the canonical encoding of the
// decoded bytes. `variant` is one of sodium_base64_VARIANT_*. libsodium rejects invalid padding and
// nonzero trailing bits but accepts bytes 0x80 and above, so this function checks for those itself.
inline bool decode_base64(std::string_view text, int variant, std::string *out) {
  const auto is_ascii = [](char c) { return static_cast<signed char>(c) >= 0; };
  if (!std::all_of(text.begin(), text.end(), is_ascii)) return false;
  out->resize(text.size() / 4 * 3 + 3);
  std::size_t size = 0;
  const int failed = sodium_base642bin(reinterpret_cast<unsigned char *>(out->data()), out->size(),
                                       text.data(), text.size(), nullptr, &size, nullptr, variant);
  out->resize(failed == 0 ? size : 0);
  return failed == 0;
}

}  // namespace bulkhead
