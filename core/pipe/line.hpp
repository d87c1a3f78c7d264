// Classifies a line's JSON-RPC message, as far as forwarding requires.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bulkhead::pipe {

enum class LineKind : std::uint8_t {
  request,  // awaits an answer; also text that is not a JSON object, so that the host answers the
            // error
  notification,  // an object without id
  response       // an answer to a request of the host
};

// Tokens as in the line (strings with quotes), empty if absent. Borrowed.
struct Line {
  LineKind kind = LineKind::request;
  std::string_view id, method;
  bool has_result = false;
};

// Never refuses: the host validates messages.
Line classify(std::string_view text) noexcept;

// Returns a JSON-RPC error with the code -32001 (the transport could not deliver). id: a token;
// empty: null.
std::string lost_answer(std::string_view id, std::string_view message);

// The method's name for an error text: unescaped and cut; "request" if there is none.
std::string method_name(std::string_view token);

}  // namespace bulkhead::pipe
