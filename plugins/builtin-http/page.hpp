// Converts the body of a response to text.
#pragma once

#include <atomic>
#include <string>

#include "builtin-http/message.hpp"

namespace builtin_http {

enum class Format { markdown, content, raw };

// Returns the body (which is consumed) as UTF-8: HTML as Markdown or plain text (content); other
// types, and `raw`, unchanged. False: *problem is a sentence. May take seconds; ends early if
// cancelled becomes true. Thread: any.
bool page_text(Response *response, Format format, const std::atomic<bool> &cancelled,
               std::string *text, std::string *problem);

}  // namespace builtin_http
