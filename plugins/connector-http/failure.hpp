// Converts HTTP error responses to error messages that suggest a remedy. The messages contain the
// status and the reason, but never a response body or a credential.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/abi/ext/connector.h"
#include "http-codec/response_head.hpp"
#include "url.hpp"

namespace connector_http {

using http_codec::ResponseHead;

// The relevant fields of an error response.
struct HttpFailure {
  std::uint16_t status = 0;
  std::uint32_t retry_after_ms = 0;
  // The values of WWW-Authenticate, unchanged, within the limits of bh_lane_failure.
  std::vector<std::string> challenges;
  bool challenged = false;          // there is a challenge, perhaps one that is too long
  bool insufficient_scope = false;  // a challenge contains error="insufficient_scope"
  std::string scope;                // from the first challenge that has one; printable ASCII
  std::string location;             // only the origin and path

  // Returns true if the server asks the client to retry later: 429 Too Many Requests or 503 Service
  // Unavailable, with Retry-After in seconds.
  bool asks_to_wait() const noexcept {
    return (status == 429 || status == 503) && retry_after_ms > 0;
  }
};

HttpFailure describe(const ResponseHead &head, const Url &url);

// Returns the error for the failed exchange. `with_session` is true if the request had a session
// ID. In this case, a status of 404 means that the session has expired.
bh_error to_error(const HttpFailure &failure, bool with_session);

// The form in which a failure is reported to the host. `failure` is null if the failure did not
// result from an HTTP response. Borrows both.
class ReportedFailure {
 public:
  ReportedFailure(const bh_error &error, const HttpFailure *failure) noexcept;
  ReportedFailure(const ReportedFailure &) = delete;
  ReportedFailure &operator=(const ReportedFailure &) = delete;
  const bh_lane_failure *get() const noexcept { return &failure_; }

 private:
  std::array<bh_str, ResponseHead::max_challenges> challenges_{};
  bh_lane_failure failure_;
};

// Returns the value of a parameter in a WWW-Authenticate challenge, without its quotes if it was
// quoted. Returns an empty string if the parameter is absent.
std::string challenge_parameter(std::string_view challenge, std::string_view name);

// Converts a Retry-After value in seconds to milliseconds, limited to one hour. Returns 0 for a
// date or an invalid value.
std::uint32_t retry_after_ms(std::string_view value) noexcept;

}  // namespace connector_http
