// One round of input for a call to a server of revision 2026-07-28: the requests from an
// input_required result, the client's answers, and the members to add when the call is repeated.
// The server is not trusted: its requests are limited in number and size, and a request is accepted
// only if the client's capabilities permit it.
//
// Used on the reactor thread.
#pragma once

#include <cstdint>
#include <set>
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
  static constexpr std::size_t max_bytes = 1u << 20;  // of the requests and the state together,
                                                      // and separately of the answers
  static constexpr std::size_t max_state_bytes = 64u << 10;

  struct Request {
    std::string key;  // JSON token
    mcp::Method method = mcp::Method::none;
    std::string params;  // JSON object
    std::string answer;  // JSON object; empty until answer() has been called
  };

  // Reads a validated result. Returns BH_E_PROTOCOL if the result has neither requests nor a state,
  // or violates the revision in another way; BH_E_DENIED if a request needs a capability that is
  // not in `caps`; and BH_E_LIMIT if a limit is exceeded. Error messages are phrased to follow
  // 'server "x" '. Requests whose keys (JSON tokens) are in `answered` are left out.
  static Result<InputRound> read(std::string_view result, ClientCaps caps,
                                 const std::set<std::string> &answered = {});

  const std::vector<Request> &requests() const noexcept { return requests_; }
  // Stores the answer to the request with this index in requests(). The answer must be a validated
  // JSON value. Returns false if there is no such request, it has already been answered, the answer
  // is not an object, or the answers are too large.
  bool answer(std::size_t request, std::string_view result);
  // Returns the size of the requests, the state and the answers.
  std::size_t bytes() const noexcept { return bytes_ + answer_bytes_; }
  bool complete() const noexcept { return answered_ == requests_.size(); }

  // Returns the members to add to the params of the repeated request, without braces. The text ends
  // with a comma unless it is empty. The server's state is returned byte for byte.
  std::string members() const;

 private:
  Result<void> add(std::string_view key, std::string_view request, ClientCaps caps);

  std::vector<Request> requests_;
  std::string state_;  // JSON token; empty if the server sent none
  std::size_t answered_ = 0, bytes_ = 0, answer_bytes_ = 0;
};

}  // namespace bulkhead
