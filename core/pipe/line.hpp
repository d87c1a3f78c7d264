// What kind of JSON-RPC message a line is, as far as passing it on needs to know.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bulkhead::pipe {

enum class LineKind : std::uint8_t {
  request,  // awaits an answer; also what is no JSON object, so that the host answers the error
  notification,  // an object without id
  response       // an answer to a request of the host
};

// Tokens as they stand in the line (strings with their quotes), empty where absent. Borrowed.
struct Line {
  LineKind kind = LineKind::request;
  std::string_view id, method;
  bool has_result = false;
};

// Never refuses: whether a message is good is for the host to say.
Line classify(std::string_view text) noexcept;

// A JSON-RPC error with the code -32001 (the transport could not deliver). id: a token; empty:
// null.
std::string lost_answer(std::string_view id, std::string_view message);

// The method's name for an error text: unescaped and cut; "request" where there is none.
std::string method_name(std::string_view token);

}  // namespace bulkhead::pipe
