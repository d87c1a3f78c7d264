// Formats the status and headers of a response as text.
#pragma once

#include <string>
#include <string_view>

#include "builtin-http/message.hpp"

namespace builtin_http {

// Returns "URL: ...", "Status: 404 Not Found", an empty line, "Headers:" and indented "name: value"
// lines. Values that are not printable ASCII are shown as <binary>.
std::string head_text(const Response &response);
std::string_view shown_value(const Header &header);

}  // namespace builtin_http
