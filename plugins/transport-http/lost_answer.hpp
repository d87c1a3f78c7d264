// Creates the error that is sent instead of a response that is too large to be kept for resumption.
#pragma once

#include <string>
#include <string_view>

namespace transport_http {

// Returns a JSON-RPC error with the ID of the response. If the response has no ID (as in a batch),
// the ID of the error is null.
std::string lost_answer(std::string_view answer);

}  // namespace transport_http
