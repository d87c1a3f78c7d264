// A response's status and headers as text.
#pragma once

#include <string>

#include "builtin-http/message.hpp"

namespace builtin_http {

// "URL: ...\nStatus: 404 Not Found\n\nHeaders:\n  name: value\n..."; a value that is not printable
// ASCII is shown as <binary>.
std::string head_text(const Response &response);

}  // namespace builtin_http
