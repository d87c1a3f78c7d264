#include "mcp/header_value.hpp"

#include <sodium.h>

#include <algorithm>

#include "base/base64.hpp"
#include "bulkhead/cpp/text.hpp"

namespace bulkhead::mcp {
namespace {

constexpr std::string_view prefix = "=?base64?", suffix = "?=";
constexpr int encoding = sodium_base64_VARIANT_ORIGINAL;

bool is_printable(char c) noexcept {
  return c >= ' ' && c <= '~';
}

bool looks_encoded(std::string_view value) noexcept {
  return value.starts_with(prefix) && value.ends_with(suffix);
}

bool stays_plain(std::string_view text) noexcept {
  return !text.empty() && text.front() != ' ' && text.back() != ' ' && !looks_encoded(text) &&
         std::all_of(text.begin(), text.end(), is_printable);
}

HeaderText malformed(const char *problem) noexcept {
  return {{}, problem};
}

HeaderText decode_encoded(std::string_view base64, std::string *scratch) {
  if (!decode_base64(base64, encoding, scratch)) return malformed("its base64 is invalid");
  if (!bh::is_utf8(*scratch)) return malformed("its decoded text is not valid UTF-8");
  return {*scratch, nullptr};
}

}  // namespace

void append_header_value(std::string *out, std::string_view text) {
  if (stays_plain(text)) {
    out->append(text);
    return;
  }
  out->append(prefix);
  const std::size_t begin = out->size();
  out->resize(begin + sodium_base64_encoded_len(text.size(), encoding));
  sodium_bin2base64(out->data() + begin, out->size() - begin,
                    reinterpret_cast<const unsigned char *>(text.data()), text.size(), encoding);
  out->pop_back();  // the terminating zero
  out->append(suffix);
}

HeaderText decode_header_value(std::string_view value, std::string *scratch) {
  value = trimmed_header_value(value);
  if (looks_encoded(value)) {
    // In "=?base64?=", the prefix and the suffix overlap. This value is rejected because some
    // servers might treat it as encoded text.
    if (value.size() < prefix.size() + suffix.size()) return malformed("its base64 is invalid");
    value.remove_prefix(prefix.size());
    value.remove_suffix(suffix.size());
    return decode_encoded(value, scratch);
  }
  const bool plain =
      std::all_of(value.begin(), value.end(), [](char c) { return is_printable(c) || c == '\t'; });
  return plain ? HeaderText{value, nullptr}
               : malformed("it has characters that must be encoded with base64");
}

std::string_view trimmed_header_value(std::string_view value) noexcept {
  const std::size_t begin = value.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return value.substr(begin, value.find_last_not_of(" \t") - begin + 1);
}

}  // namespace bulkhead::mcp
