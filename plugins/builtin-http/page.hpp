// From the bytes of a response to the answer of the tool.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "builtin-http/url.hpp"

namespace builtin_http {

enum class Format { markdown, content, raw };

struct PageRequest {
  Format format = Format::markdown;
  std::uint64_t start_index = 0;    // bytes of the extracted text
  std::uint64_t max_length = 5000;  // bytes, at least one character is given
};

// Is this content that has no text? Empty: no; else the type, for the error text.
std::string binary_type(std::string_view content_type);

// UTF-8 from UTF-8 (with or without mark), ISO-8859-1 or Windows-1252; which of them, by the mark,
// content_type, the page's own <meta>, or what fits. What is not a character becomes U+FFFD.
// False: another character set; *problem is a sentence.
bool to_utf8(std::string &&body, std::string_view content_type, std::string *out,
             std::string *problem);

// The result (JSON) for a page that was fetched. Thread: any; may take seconds.
std::string page_result(const Url &url, std::string_view content_type, std::string &&body,
                        const PageRequest &request, const std::atomic<bool> &cancelled);

}  // namespace builtin_http
