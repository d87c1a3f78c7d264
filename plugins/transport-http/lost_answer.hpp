// Creates the error that replaces a response that is too large to keep for resumption.
#pragma once

#include <string>
#include <string_view>

namespace transport_http {

// Returns a JSON-RPC error with the ID of the response. The ID is null if none is found (as in a
// batch).
std::string lost_answer(std::string_view answer);

}  // namespace transport_http
