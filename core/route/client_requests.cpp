#include "route/client_requests.hpp"

#include <string>

#include "route/calls.hpp"
#include "route/param_headers_check.hpp"

namespace bulkhead {

bool ClientRequests::offers(Incoming &request) {
  const mcp::Method method = request.message.scan->method;
  if (is_exposed(needs_.expose, method)) return true;
  needs_.answers.error(request, code::method_not_found,
                       "Method not found: " + std::string(mcp::to_string(method)) +
                           " is not offered by this gateway's profile");
  return false;
}

void ClientRequests::answer(Session &s, Incoming &request) {
  const mcp::Method method = request.message.scan->method;
  if (const auto kind = listed_kind(method)) return needs_.lists.answer(s, request, *kind);
  switch (method) {
    case mcp::Method::tools_call:
    case mcp::Method::prompts_get:
    case mcp::Method::resources_read:
    case mcp::Method::resources_subscribe:
    case mcp::Method::resources_unsubscribe:
    case mcp::Method::completion_complete:
    case mcp::Method::tasks_get:
    case mcp::Method::tasks_result:
    case mcp::Method::tasks_update:
    case mcp::Method::tasks_cancel:
      return call(s, request);
    default:
      return not_found(request);
  }
}

void ClientRequests::call(Session &s, Incoming &request) {
  const mcp::Method method = request.message.scan->method;
  CallInHand hand{request.message, {}, {}, {}};
  const bool found = is_task_method(method) ? needs_.tasks.find(s, request, &hand.target)
                                            : needs_.targets.find(s, request, &hand.target);
  if (!found) return;
  if (request.headers != nullptr) {
    if (const auto fault = check_param_headers(request.message, hand.target, *request.headers)) {
      return needs_.answers.error(request, mcp::header_mismatch, fault->text, 400);
    }
  }
  if (method == mcp::Method::resources_subscribe || method == mcp::Method::resources_unsubscribe) {
    const auto refusal = needs_.subscriptions.refusal(s, *hand.target.lane, method);
    if (refusal.error_code != 0) {
      return needs_.answers.error(request, refusal.error_code, refusal.text);
    }
  }
  if (request.state != nullptr) {
    if (request.state->server != hand.target.lane->upstream().name()) {
      return needs_.answers.error(request, code::invalid_params,
                                  "requestState belongs to another server: send the request "
                                  "without it");
    }
    hand.state = request.state->token;
  }
  needs_.calls.begin(s, request, hand);
}

void ClientRequests::not_found(Incoming &request) {
  std::string scratch;
  const std::string_view method =
      mcp::unquote(request.message[request.message.scan->method_text], &scratch);
  needs_.answers.error(request, code::method_not_found,
                       "Method not found: " + std::string(method.substr(0, 100)));
}

}  // namespace bulkhead
