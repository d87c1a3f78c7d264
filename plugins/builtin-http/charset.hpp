// Converts text to UTF-8 from the character encodings that are used on the web.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

namespace builtin_http {

// Converts `body` to UTF-8. The encoding is taken from the byte order mark or, if there is none,
// from content_type or from the <meta> element of an HTML page, in this order. Without any of
// these, a body that is not valid UTF-8 is treated as Windows-1252. Encoding labels are interpreted
// as defined in the WHATWG Encoding Standard. Invalid bytes become U+FFFD.
//
// Returns false and sets *problem to an error message if the encoding is not supported or the call
// was cancelled. Thread-safe.
bool to_utf8(std::string &&body, std::string_view content_type, const std::atomic<bool> &cancelled,
             std::string *out, std::string *problem);

}  // namespace builtin_http
