#include "call.hpp"

#include <bulkhead/cpp/basics.hpp>

namespace bulkhead::rules {

Call call_of(const bh_policy_request &request) {
  Call call;
  call.exchange = request.exchange;
  call.session = request.session;
  call.transport = bh::view(request.transport);
  call.peer = bh::view(request.peer);
  call.principal = bh::view(request.principal);
  call.process_name = bh::view(request.process_name);
  call.method = bh::view(request.method);
  call.server = bh::view(request.server);
  call.name = bh::view(request.name);
  call.arguments = bh::view(request.arguments);
  call.meta = bh::view(request.meta);
  call.again = (request.flags & BH_REQUEST_AGAIN) != 0;
  call.approved = (request.flags & BH_REQUEST_APPROVED) != 0;
  call.to_server = (request.flags & BH_REQUEST_TO_SERVER) != 0;
  call.undecided = (request.flags & BH_REQUEST_UNDECIDED) != 0;
  if (!BH_HAS(bh_policy_request, &request, event)) return call;
  call.definition = bh::view(request.definition);
  call.session_calls = request.session_calls;
  call.session_age_ns = request.session_age_ns;
  call.pin = request.pin;
  call.event = request.event == BH_EVENT_INPUT_REQUEST    ? Event::input_request
               : request.event == BH_EVENT_INPUT_RESPONSE ? Event::input_response
               : request.event == BH_EVENT_NOTIFICATION   ? Event::notification
                                                          : Event::request;
  if (!BH_HAS(bh_policy_request, &request, extra)) return call;
  call.argument = bh::view(request.argument);
  call.context = bh::view(request.context);
  call.extra = bh::view(request.extra);
  if (BH_HAS(bh_policy_request, &request, claimed_name))
    call.claimed_name = bh::view(request.claimed_name);
  return call;
}

std::string_view Call::uri() const noexcept {
  const bool is_call = event == Event::request || event == Event::response;
  return is_call && method != "tools/call" && method != "prompts/get" ? name : std::string_view{};
}

}  // namespace bulkhead::rules
