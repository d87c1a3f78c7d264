// Converts HTTP error answers to errors that name a remedy. The texts contain the status and the
// reason, but never a body or a credential.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bulkhead/abi/core.h"
#include "http-codec/response_head.hpp"
#include "url.hpp"

namespace connector_http {

using http_codec::ResponseHead;

// The relevant fields of an error answer.
struct HttpFailure {
  std::uint16_t status = 0;
  std::uint32_t retry_after_ms = 0;
  bool challenged = false;          // WWW-Authenticate is present
  bool insufficient_scope = false;  // WWW-Authenticate has error="insufficient_scope"
  std::string scope;                // scope in WWW-Authenticate, at most 120 bytes
  std::string location;             // origin and path only

  // Returns true for 429 Too Many Requests and 503 Service Unavailable with Retry-After in seconds.
  bool asks_to_wait() const noexcept {
    return (status == 429 || status == 503) && retry_after_ms > 0;
  }
};

HttpFailure describe(const ResponseHead &head, const Url &url);

// Returns the error for an exchange. `with_session` means that the request had a session id, so 404
// means that the session no longer exists.
bh_error to_error(const HttpFailure &failure, bool with_session);

// Returns a parameter of a WWW-Authenticate challenge, quoted or unquoted. Returns an empty string
// if it is absent.
std::string challenge_parameter(std::string_view challenge, std::string_view name);

// Converts Retry-After from seconds to milliseconds, up to one hour. Returns 0 for a date or an
// invalid value.
std::uint32_t retry_after_ms(std::string_view value) noexcept;

}  // namespace connector_http
