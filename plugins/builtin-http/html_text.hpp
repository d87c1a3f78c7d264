// Converts HTML pages to text.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

namespace builtin_http {

// Converts `html`, which must be UTF-8, to Markdown or plain text in *out. On failure, returns
// false and sets *problem to an error message. Fails if `cancelled` becomes true or if a limit in
// html_tree.hpp is exceeded. Thread-safe.
bool html_to_text(std::string_view html, bool markdown, const std::atomic<bool> &cancelled,
                  std::string *out, std::string *problem);

}  // namespace builtin_http
