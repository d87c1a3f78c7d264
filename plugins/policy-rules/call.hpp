// Describes a call or another event that the rules evaluate. The host has already resolved all
// names. The strings are borrowed.
#pragma once

#include <bulkhead/abi/ext/policy.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "roots.hpp"

namespace bulkhead::rules {

struct Call {
  std::uint64_t exchange = 0, session = 0, session_calls = 0, session_age_ns = 0;
  std::uint32_t pin = BH_PIN_UNKNOWN;
  std::string_view transport, peer, principal, process_name, method, server, name, arguments, meta,
      definition, argument, context, extra, claimed_name;
  // The type of the event; request for calls and their results. For all other events, `arguments`
  // is the body and `name` is a tool.
  Event event = Event::request;
  bool to_server = false;  // direction of a notification
  bool again = false;      // the call was evaluated before (BH_REQUEST_AGAIN)
  bool approved = false;   // with `again`: these rules required the approval
  bool undecided = false;  // for results only: decide() was not called for the request

  // Returns the URI of a resource request or the target of a completion request. Returns an empty
  // string for other requests and events.
  std::string_view uri() const noexcept;
  // Returns the total size in bytes of the client's data in the request. Tool and prompt names are
  // not counted because the server defines them.
  std::size_t asked_bytes() const noexcept {
    return uri().size() + arguments.size() + meta.size() + argument.size() + context.size() +
           extra.size();
  }
};
Call call_of(const bh_policy_request &request);

}  // namespace bulkhead::rules
