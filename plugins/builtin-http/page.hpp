// Converts the body of a response to text.
#pragma once

#include <atomic>
#include <string>

#include "builtin-http/message.hpp"

namespace builtin_http {

enum class Format { markdown, content, raw };

// Converts the body to UTF-8 text in *text, and consumes the body. HTML is converted to Markdown or
// plain text (`content`). Other types are not converted. If `format` is raw, nothing is
// converted. On failure, returns false and sets *problem to an error message. May take seconds;
// stops early if `cancelled` becomes true. Thread-safe.
bool page_text(Response *response, Format format, const std::atomic<bool> &cancelled,
               std::string *text, std::string *problem);

}  // namespace builtin_http
