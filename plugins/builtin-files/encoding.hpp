// Encodes and decodes Base64 (RFC 4648, with padding).
#pragma once

#include <string>
#include <string_view>

namespace builtin_files {

std::string base64(std::string_view bytes);

// Returns false if `text` is not valid Base64. Line breaks are ignored.
bool from_base64(std::string_view text, std::string *out);

}  // namespace builtin_files
