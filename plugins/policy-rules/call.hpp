// A call or another event to evaluate, with the names that the host resolved. Thread-safe.
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
  Event event = Event::request;  // for other events, `arguments` is the evaluated text and `name`
                                 // is a tool
  bool to_server = false;        // direction of a notification
  bool again = false;            // evaluated again after an approval
  bool approved = false;         // the rules that required the approval

  // Returns the URI chosen by the client in a request, or the target of a completion.
  std::string_view uri() const noexcept;
  // Returns the size of all data that the client sends to the server. Tool and prompt names are not
  // counted, because the server defines them.
  std::size_t asked_bytes() const noexcept {
    return uri().size() + arguments.size() + meta.size() + argument.size() + context.size() +
           extra.size();
  }
};
Call call_of(const bh_policy_request &request);

}  // namespace bulkhead::rules
