// One round of a call at a server of revision 2026-07-28 that asks for input: the requests of an
// input_required result, the client's answers, and what the repeated call has in addition. The
// server is not trusted: the requests are limited in number and size, and only those are accepted
// that the client's capabilities admit.
//
// Used on the I/O thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "mcp/scan.hpp"
#include "route/protocol.hpp"

namespace bulkhead {

class InputRound {
 public:
  static constexpr std::size_t max_requests = 16;
  static constexpr std::size_t max_bytes = 1u << 20;  // of the requests and the state, and of the
                                                      // answers
  static constexpr std::size_t max_state_bytes = 64u << 10;

  struct Request {
    std::string key;  // JSON token
    mcp::Method method = mcp::Method::none;
    std::string params;  // JSON object
    std::string answer;  // JSON object; empty until the client has answered
  };

  // Reads a validated result. Fails with BH_E_PROTOCOL if the result has neither requests nor a
  // state, or is not as the revision requires; with BH_E_DENIED if a request needs a capability
  // that is not among `caps`; with BH_E_LIMIT beyond the limits. The texts follow 'server "x" '.
  static Result<InputRound> read(std::string_view result, ClientCaps caps);

  const std::vector<Request> &requests() const noexcept { return requests_; }
  // Stores the client's answer to this request (the index in requests()), a validated JSON object.
  // Returns false if it is not an object, the request was answered, or the answers are too large.
  bool answer(std::size_t request, std::string_view result);
  // Of the requests and the state.
  std::size_t bytes() const noexcept { return bytes_; }
  bool complete() const noexcept { return answered_ == requests_.size(); }

  // The members of the repeated request's params, without braces; ends with a comma unless empty.
  // The server's state is unchanged, byte for byte.
  std::string members() const;

 private:
  Result<void> add(std::string_view key, std::string_view request, ClientCaps caps);

  std::vector<Request> requests_;
  std::string state_;  // JSON token; empty if the server sent none
  std::size_t answered_ = 0, bytes_ = 0, answer_bytes_ = 0;
};

}  // namespace bulkhead
