// Converts HTML pages to text.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

namespace builtin_http {

// `html` is UTF-8. *out receives Markdown or plain text. On failure, returns false and sets
// *problem to an error message. Stops early if `cancelled` becomes true. Limits: see html_tree.hpp.
// Thread-safe.
bool html_to_text(std::string_view html, bool markdown, const std::atomic<bool> &cancelled,
                  std::string *out, std::string *problem);

}  // namespace builtin_http
