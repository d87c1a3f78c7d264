// Converts HTTP error answers to errors that state a remedy. The texts contain status and reason,
// and never a body or a credential.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bulkhead/abi/core.h"
#include "http-codec/response_head.hpp"
#include "url.hpp"

namespace connector_http {

using http_codec::ResponseHead;

// The relevant fields of an error answer's head.
struct HttpFailure {
  std::uint16_t status = 0;
  std::uint32_t retry_after_ms = 0;
  bool challenged = false;          // has WWW-Authenticate
  bool insufficient_scope = false;  // ... with error="insufficient_scope"
  std::string scope;                // ... and this scope; at most 120 bytes
  std::string location;             // origin and path only

  // Returns true for 429 Too Many Requests or 503 Service Unavailable with Retry-After in seconds.
  bool asks_to_wait() const noexcept {
    return (status == 429 || status == 503) && retry_after_ms > 0;
  }
};

HttpFailure describe(const ResponseHead &head, const Url &url);

// Returns the error for an exchange. If with_session is true, the request carried a session id, so
// 404 means that the server no longer has the session.
bh_error to_error(const HttpFailure &failure, bool with_session);

// Returns a parameter of a WWW-Authenticate challenge, quoted or not; empty if absent.
std::string challenge_parameter(std::string_view challenge, std::string_view name);

// Converts Retry-After from seconds to milliseconds; returns 0 for a date or an invalid value. At
// most one hour.
std::uint32_t retry_after_ms(std::string_view value) noexcept;

}  // namespace connector_http
