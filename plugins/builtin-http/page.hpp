// Converts response bodies to text.
#pragma once

#include <atomic>
#include <string>

#include "builtin-http/message.hpp"

namespace builtin_http {

enum class Format { markdown, content, raw };

// Moves the body of the response to *text, converted to UTF-8. HTML is also converted: to Markdown
// if `format` is markdown, or to plain text if `format` is content. If `format` is raw, HTML is not
// converted, and binary content is accepted. On failure, returns false and sets *problem to an
// error message. May take seconds, but stops early if `cancelled` becomes true. Thread-safe.
bool page_text(Response *response, Format format, const std::atomic<bool> &cancelled,
               std::string *text, std::string *problem);

}  // namespace builtin_http
