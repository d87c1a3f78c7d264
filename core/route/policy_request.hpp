// Creates policy requests.
#pragma once

#include <cstdint>

#include "bulkhead/abi/ext/policy.h"
#include "bulkhead/cpp/basics.hpp"
#include "route/sessions.hpp"

namespace bulkhead {

// Returns a request in which only the fields that describe the client are set. The strings are
// borrowed from the session.
inline bh_policy_request policy_request_of(const Session &session, std::uint64_t now_ns) noexcept {
  bh_policy_request request{};
  request.size = sizeof request;
  request.session = session.client();
  request.transport = bh::str(session.transport);
  request.peer = bh::str(session.address);
  request.principal = bh::str(session.principal);
  request.process_name = bh::str(session.process_name);
  request.claimed_name = bh::str(text_of(session.claimed_name));
  request.session_calls = session.load->calls;
  request.session_age_ns = now_ns - session.load->since_ns;
  return request;
}

}  // namespace bulkhead
