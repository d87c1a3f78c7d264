// The text of an HTML page.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

namespace builtin_http {

// Bounds of one page; beyond, the page is refused as too complex.
inline constexpr std::size_t max_tree_bytes = 192u << 20;
inline constexpr std::uint64_t max_parse_ms = 5'000;

// html: UTF-8. Gives Markdown or plain text. False: *problem is a sentence. Thread: any; may take
// max_parse_ms, less when *cancelled becomes true.
bool html_to_text(std::string_view html, bool markdown, const std::atomic<bool> &cancelled,
                  std::string *out, std::string *problem);

}  // namespace builtin_http
