// Text as the value of an HTTP header (Mcp-Name and Mcp-Param-* of revision 2026-07-28).
//
// Printable ASCII without outer white space is written unchanged. All other text, empty text, and
// text that looks like the encoded form, is written as =?base64?...?= around the base64 form of its
// UTF-8 (RFC 4648, section 4, with padding). The markers are case-sensitive.
//
// Thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace bulkhead::mcp {

// Appends the text, which is valid UTF-8, as a header value.
void append_header_value(std::string *out, std::string_view text);

struct HeaderText {
  std::string_view text;
  const char *problem = nullptr;  // static text if the value is malformed; `text` is then empty
};

// Decodes a header value without the space and tabs around it. The text is a view into `value`, or
// into *scratch if it was encoded. It is valid UTF-8. Malformed are other characters than printable
// ASCII and the tab, base64 in any but its one canonical form, and bytes that are not UTF-8.
HeaderText decode_header_value(std::string_view value, std::string *scratch);

// Removes the space and tabs that HTTP permits around a value.
std::string_view trimmed_header_value(std::string_view value) noexcept;

}  // namespace bulkhead::mcp
