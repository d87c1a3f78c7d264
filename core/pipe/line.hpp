// Classifies the JSON-RPC message in a line, as far as forwarding requires.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bulkhead::pipe {

enum class LineKind : std::uint8_t {
  // Expects a response. Text that is not a JSON object counts as a request, because the host
  // responds to it with an error.
  request,
  notification,  // an object without an ID
  response       // a response to a request from the host
};

// The tokens point into the line. Strings include their quotes. Missing members are empty.
struct Line {
  LineKind kind = LineKind::request;
  std::string_view id, method;
  bool has_result = false;
};

// Classifies any text. Checks only that it is a JSON object; the host validates messages.
Line classify(std::string_view text) noexcept;

// Returns a JSON-RPC error response with the code -32001: the request was not sent, or its response
// was lost, so it may have run. `id` is a JSON token; if it is empty, null is used.
std::string lost_answer(std::string_view id, std::string_view message);

// Returns the method name for an error message, unescaped and truncated. Returns "request" if
// `token` is not a JSON string.
std::string method_name(std::string_view token);

}  // namespace bulkhead::pipe
