// What a request and its repetition have in common, and the members that only a repetition has.
//
// A client of MCP 2026-07-28 that got a result of the type input_required sends the same request
// again, with `inputResponses` and the `requestState` of the result.
#pragma once

#include <string>
#include <string_view>

#include "mcp/scan.hpp"
#include "route/message.hpp"

namespace bulkhead {

// Returns true if results of this method may ask the client for input.
constexpr bool may_ask_for_input(mcp::Method method) noexcept {
  return method == mcp::Method::tools_call || method == mcp::Method::prompts_get ||
         method == mcp::Method::resources_read;
}

// The members of params, as JSON; empty if absent. Borrows the message. Looks into params only if
// the scanner has found members there that requests do not have otherwise.
struct Repetition {
  std::string_view state, responses;

  static Repetition of(const Message &request) noexcept {
    const mcp::Scan &scan = *request.scan;
    if (!scan.modern || !scan.extra_params || !may_ask_for_input(scan.method)) return {};
    const std::string_view params = request[scan.params];
    return {mcp::member(params, "requestState"), mcp::member(params, "inputResponses")};
  }
};

// The state of a server, as the client returns it in the state of the gateway.
struct RequestState {
  std::string server;  // that has sent it; no other one receives it
  std::string token;   // JSON string, as the server wrote it
  // A human approver has allowed the request, because of this rule.
  bool approved = false;
  std::string approved_rule;
};

}  // namespace bulkhead
