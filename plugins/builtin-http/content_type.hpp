// Parses Content-Type headers.
#pragma once

#include <string>
#include <string_view>

namespace builtin_http {

// Returns the media type in lower case: "text/html" for "Text/HTML; charset=x".
std::string media_type(std::string_view content_type);

// Returns the charset parameter of a header or a <meta> element: "shift_jis" for "text/html;
// charset=Shift_JIS". Returns an empty string if there is none.
std::string charset_parameter(std::string_view text);

// Returns the media type, for an error message, if the content is binary. Returns an empty string
// if it is text.
std::string binary_type(std::string_view content_type);

// Returns true if the content type is HTML. If there is no content type, the start of the text
// decides.
bool is_html(std::string_view content_type, std::string_view text);

}  // namespace builtin_http
