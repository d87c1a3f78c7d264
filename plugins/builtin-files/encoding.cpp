#include "builtin-files/encoding.hpp"

#include <sodium/utils.h>

#include <algorithm>

namespace builtin_files {

std::string base64(std::string_view bytes) {
  std::string out(sodium_base64_ENCODED_LEN(bytes.size(), sodium_base64_VARIANT_ORIGINAL), '\0');
  sodium_bin2base64(out.data(), out.size(), reinterpret_cast<const unsigned char *>(bytes.data()),
                    bytes.size(), sodium_base64_VARIANT_ORIGINAL);
  out.pop_back();  // the terminating NUL
  return out;
}

bool from_base64(std::string_view text, std::string *out) {
  // Rejects bytes of 0x80 and above, because libsodium would decode them as the last letter of the
  // alphabet.
  const auto is_ascii = [](char c) { return static_cast<signed char>(c) >= 0; };
  if (!std::all_of(text.begin(), text.end(), is_ascii)) return false;
  out->resize(text.size() / 4 * 3 + 3);
  std::size_t size = 0;
  const int failed =
      sodium_base642bin(reinterpret_cast<unsigned char *>(out->data()), out->size(), text.data(),
                        text.size(), "\r\n", &size, nullptr, sodium_base64_VARIANT_ORIGINAL);
  out->resize(failed == 0 ? size : 0);
  return failed == 0;
}

}  // namespace builtin_files
