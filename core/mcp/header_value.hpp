// Encodes text as HTTP header values (Mcp-Name and Mcp-Param-* of revision 2026-07-28).
//
// Printable ASCII without leading or trailing white space is not encoded. Other text, empty text,
// and text that looks encoded are written as =?base64?...?=, which contains the base64 form of the
// UTF-8 bytes (RFC 4648, section 4, with padding). The markers are case-sensitive.
//
// Thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace bulkhead::mcp {

// Appends the text as a header value. The text must be valid UTF-8.
void append_header_value(std::string *out, std::string_view text);

struct HeaderText {
  std::string_view text;
  // Null if the value is valid. Otherwise, a static string that explains why it is malformed;
  // `text` is then empty.
  const char *problem = nullptr;
};

// Decodes a header value. Surrounding spaces and tabs are ignored. The decoded text is valid UTF-8.
// It points into `value` or, if the value was encoded, into *scratch. A value is malformed if it
// contains a character other than printable ASCII or a tab, or if its base64 is not canonical or
// decodes to bytes that are not UTF-8.
HeaderText decode_header_value(std::string_view value, std::string *scratch);

// Removes the spaces and tabs that HTTP permits around a value.
std::string_view trimmed_header_value(std::string_view value) noexcept;

}  // namespace bulkhead::mcp
