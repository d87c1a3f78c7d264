// Converts text to UTF-8 from the character sets used on the web.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

namespace builtin_http {

// The character set is determined by the byte order mark, else by content_type, else by the <meta>
// element of an HTML page. Otherwise, it is UTF-8 if the body is valid UTF-8, else Windows-1252.
// Labels have the meaning defined by the WHATWG Encoding Standard. Invalid bytes become U+FFFD.
//
// If the character set is not supported or the call was cancelled, returns false and sets *problem
// to an error message. Thread-safe.
bool to_utf8(std::string &&body, std::string_view content_type, const std::atomic<bool> &cancelled,
             std::string *out, std::string *problem);

}  // namespace builtin_http
