// As much HTTP/1.1 as the service socket speaks: one request, one answer, bodies with a length.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace bulkhead::program {

struct HttpHead {
  enum class State : unsigned char { more, whole, bad };
  State state = State::more;
  int status = 0;   // of bad: what to answer
  std::string why;  // of bad
  std::string method, target, host;
  std::size_t head_bytes = 0, body_bytes = 0;
  bool wants_continue = false;
};

// Reads a request's head from the bytes that have come so far.
HttpHead parse_head(std::string_view bytes, std::size_t max_head, std::size_t max_body);

std::string http_answer(int status, std::string_view body,
                        std::string_view type = "application/json");
// {"error":"..."}
std::string error_body(std::string_view why);

struct HttpReply {
  int status = 0;
  std::string body;
};
// A whole answer that ended with its connection.
Result<HttpReply> parse_reply(std::string_view bytes);

}  // namespace bulkhead::program
