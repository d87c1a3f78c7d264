// The replacement for an answer that is too large to be kept for clients that resume.
#pragma once

#include <string>
#include <string_view>

namespace transport_http {

// Returns a JSON-RPC error with the answer's id, or null as the id if none is found (as in a
// batch).
std::string lost_answer(std::string_view answer);

}  // namespace transport_http
