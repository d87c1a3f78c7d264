// From the body of a response to its text.
#pragma once

#include <atomic>
#include <string>

#include "builtin-http/message.hpp"

namespace builtin_http {

enum class Format { markdown, content, raw };

// The text of the response's body (which is used up), UTF-8: of HTML as Markdown or plain
// (content), of anything else, and raw, as it came. False: *problem is a sentence. Thread: any;
// may take seconds, less when cancelled becomes true.
bool page_text(Response *response, Format format, const std::atomic<bool> &cancelled,
               std::string *text, std::string *problem);

}  // namespace builtin_http
