// Text in any character set of the web, as UTF-8.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

namespace builtin_http {

// The character set of a body is what its byte order mark says, else content_type, else (HTML) the
// page's own <meta>, else UTF-8 if the body is that, else Windows-1252. Labels mean what the
// WHATWG Encoding Standard says. What is not a character becomes U+FFFD.
//
// False: a character set that is not of the web, or cancelled; *problem is a sentence. Thread: any.
bool to_utf8(std::string &&body, std::string_view content_type, const std::atomic<bool> &cancelled,
             std::string *out, std::string *problem);

}  // namespace builtin_http
