// Replaces an answer that is too large to keep for clients that resume.
#pragma once

#include <string>
#include <string_view>

namespace transport_http {

// Returns a JSON-RPC error with the answer's id. The id is null if none is found (as in a batch).
std::string lost_answer(std::string_view answer);

}  // namespace transport_http
