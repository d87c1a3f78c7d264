// What a Content-Type header says.
#pragma once

#include <string>
#include <string_view>

namespace builtin_http {

// "text/html" of "Text/HTML; charset=x".
std::string media_type(std::string_view content_type);

// "shift_jis" of "text/html; charset=Shift_JIS" (also of a <meta>'s content); empty: none is named.
std::string charset_parameter(std::string_view text);

// Is this content that has no text? Empty: no; else the type, for the error text.
std::string binary_type(std::string_view content_type);

// Is a page of this type, beginning with this text, HTML? Without a type its beginning tells.
bool is_html(std::string_view content_type, std::string_view text);

}  // namespace builtin_http
