// Classifies a line's JSON-RPC message to the extent that forwarding requires.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bulkhead::pipe {

enum class LineKind : std::uint8_t {
  // Expects an answer. Text that is not a JSON object counts as a request, because the host answers
  // it with an error.
  request,
  notification,  // an object without an id
  response       // an answer to a request from the host
};

// Tokens as they appear in the line (strings include quotes), or empty if absent. Borrowed.
struct Line {
  LineKind kind = LineKind::request;
  std::string_view id, method;
  bool has_result = false;
};

// Accepts any text; the host validates messages.
Line classify(std::string_view text) noexcept;

// Returns a JSON-RPC error with code -32001 (the transport could not deliver the message). `id` is
// a token; if it is empty, null is used.
std::string lost_answer(std::string_view id, std::string_view message);

// Returns the method's name for an error message, unescaped and truncated, or "request" if there is
// none.
std::string method_name(std::string_view token);

}  // namespace bulkhead::pipe
