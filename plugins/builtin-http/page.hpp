// Converts the body of a response to text.
#pragma once

#include <atomic>
#include <string>

#include "builtin-http/message.hpp"

namespace builtin_http {

enum class Format { markdown, content, raw };

// Returns the body (which is consumed) as UTF-8 in *text. HTML is converted to Markdown or plain
// text (`content`); other types, and all types with `raw`, are not converted. On failure, returns
// false and sets *problem to an error message. May take seconds; ends early if `cancelled` becomes
// true. Thread-safe.
bool page_text(Response *response, Format format, const std::atomic<bool> &cancelled,
               std::string *text, std::string *problem);

}  // namespace builtin_http
