// Parses Content-Type header values.
#pragma once

#include <string>
#include <string_view>

namespace builtin_http {

// Returns the media type in lowercase: "text/html" for "Text/HTML; charset=x".
std::string media_type(std::string_view content_type);

// Returns the charset parameter in a header value or a <meta> element: "shift_jis" for "text/html;
// charset=Shift_JIS". Returns an empty string if there is none.
std::string charset_parameter(std::string_view text);

// If the content is binary, returns its media type for use in an error message. Otherwise returns
// an empty string.
std::string binary_type(std::string_view content_type);

// Returns true if the content is HTML. Without a content type, this is determined from the
// beginning of `text`.
bool is_html(std::string_view content_type, std::string_view text);

}  // namespace builtin_http
