// Converts HTML pages to text.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

namespace builtin_http {

// html: UTF-8. Returns Markdown or plain text. False: *problem is a sentence. Ends early if
// cancelled becomes true. Limits: html_tree.hpp. Thread: any.
bool html_to_text(std::string_view html, bool markdown, const std::atomic<bool> &cancelled,
                  std::string *out, std::string *problem);

}  // namespace builtin_http
