// What is kept for clients that resume in place of an answer that is too large to be kept.
#pragma once

#include <string>
#include <string_view>

namespace transport_http {

// A JSON-RPC error with the answer's id (null where it has none that can be found: a batch).
std::string lost_answer(std::string_view answer);

}  // namespace transport_http
