// The text of an HTML page.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

namespace builtin_http {

// html: UTF-8. Gives Markdown or plain text. False: *problem is a sentence. Thread: any;
// bounds: html_tree.hpp; ends early when cancelled becomes true.
bool html_to_text(std::string_view html, bool markdown, const std::atomic<bool> &cancelled,
                  std::string *out, std::string *problem);

}  // namespace builtin_http
