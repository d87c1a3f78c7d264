// Parses Content-Type headers.
#pragma once

#include <string>
#include <string_view>

namespace builtin_http {

// The media type in lower case: "text/html" for "Text/HTML; charset=x".
std::string media_type(std::string_view content_type);

// The charset parameter, also of a <meta> element: "shift_jis" for "text/html; charset=Shift_JIS";
// empty: none.
std::string charset_parameter(std::string_view text);

// The media type if it is binary, for the error text; empty: the content is text.
std::string binary_type(std::string_view content_type);

// True if the content is HTML, by its type, or without a type by the beginning of its text.
bool is_html(std::string_view content_type, std::string_view text);

}  // namespace builtin_http
