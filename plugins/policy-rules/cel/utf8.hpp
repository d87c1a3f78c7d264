// UTF-8 helpers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace bulkhead::cel {

inline std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

// Rejects overlong forms and surrogates.
inline bool is_valid_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    std::uint64_t eight = 0;  // eight bytes at once while they are ASCII
    if (text.size() - i >= sizeof eight) {
      std::memcpy(&eight, text.data() + i, sizeof eight);
      if ((eight & 0x8080808080808080) == 0) {
        i += sizeof eight;
        continue;
      }
    }
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t tails = lead < 0x80 ? 0 : lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
    if ((lead >= 0x80 && lead < 0xC2) || lead > 0xF4 || text.size() - i <= tails) return false;
    std::uint32_t code = tails == 0 ? lead : lead & (0x3FU >> tails);
    for (std::size_t k = 1; k <= tails; ++k) {
      const auto tail = static_cast<unsigned char>(text[i + k]);
      if ((tail & 0xC0) != 0x80) return false;
      code = (code << 6) | (tail & 0x3F);
    }
    if ((tails == 2 && (code < 0x800 || (code >= 0xD800 && code <= 0xDFFF))) ||
        (tails == 3 && (code < 0x10000 || code > 0x10FFFF))) {
      return false;
    }
    i += tails + 1;
  }
  return true;
}

}  // namespace bulkhead::cel
