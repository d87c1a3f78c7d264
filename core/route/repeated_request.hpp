// Repeated requests: the methods that allow them, the members that only a repeated request has, and
// the server's state in such a request.
//
// When a client of MCP 2026-07-28 receives a result of type input_required, it sends the same
// request again, with `inputResponses` and the `requestState` from the result.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "mcp/for_each.hpp"
#include "mcp/json_names.hpp"
#include "mcp/scan.hpp"
#include "route/message.hpp"
#include "route/removed_members.hpp"
#include "route/splice.hpp"

namespace bulkhead {

// Returns true if a result of this method may ask the client for input. The client answers by
// repeating its request.
constexpr bool may_be_repeated(mcp::Method method) noexcept {
  return method == mcp::Method::tools_call || method == mcp::Method::prompts_get ||
         method == mcp::Method::resources_read;
}

// The values of `requestState` and `inputResponses` in params, as JSON, which point into the
// message. Empty if absent, if the request is not of MCP 2026-07-28, or if its method does not
// allow repeated requests. Params are parsed only if the scanner has found members that requests do
// not normally have.
struct Repetition {
  std::string_view state, responses;

  static Repetition of(const Message &request) noexcept {
    Repetition out;
    for_each(request, [&out](bool is_state, std::string_view, std::string_view value) {
      (is_state ? out.state : out.responses) = value;
    });
    return out;
  }
  // Returns true if the request's method allows repeated requests and the request has a
  // `requestState` or `inputResponses` member, regardless of the client's revision.
  static bool in(const Message &request) noexcept {
    bool found = false;
    if (request.scan->extra_params && may_be_repeated(request.scan->method)) {
      each_member(request, [&found](bool, std::string_view, std::string_view) { found = true; });
    }
    return found;
  }
  // Removes the members that a server of another generation than the client must not receive:
  // `task`, which has a meaning only in 2025-11-25, and, from requests of 2026-07-28,
  // `requestState` and `inputResponses`.
  static void remove_foreign(Splice *splice, const Message &request) noexcept {
    const mcp::Scan &scan = *request.scan;
    if (!scan.extra_params || !may_be_repeated(scan.method)) return;
    RemovedMembers removed(request.bytes);
    mcp::for_each_member(request[scan.params], [&](std::string_view key, std::string_view value) {
      const std::string_view name = key.substr(1, key.size() - 2);
      const bool repeats = mcp::json::same_text(name, "requestState") ||
                           mcp::json::same_text(name, "inputResponses");
      if (!mcp::json::same_text(name, "task") && !(repeats && scan.modern)) return;
      const auto begin = static_cast<std::uint32_t>(key.data() - request.bytes.data());
      const auto end = static_cast<std::uint32_t>(value.data() - request.bytes.data());
      removed.add({begin, end + static_cast<std::uint32_t>(value.size())});
    });
    for (const mcp::Range range : removed.ranges()) splice->remove(range);
  }

 private:
  template <class F>
  static void for_each(const Message &request, const F &f) noexcept {
    const mcp::Scan &scan = *request.scan;
    if (scan.modern && scan.extra_params && may_be_repeated(scan.method)) each_member(request, f);
  }
  template <class F>
  static void each_member(const Message &request, const F &f) noexcept {
    const std::string_view params = request[request.scan->params];
    mcp::for_each_member(params, [&f](std::string_view key, std::string_view value) {
      const std::string_view name = key.substr(1, key.size() - 2);
      const bool is_state = mcp::json::same_text(name, "requestState");
      if (is_state || mcp::json::same_text(name, "inputResponses")) f(is_state, key, value);
    });
  }
};

// A server's `requestState`. The client receives it inside the gateway's own `requestState` and
// returns it there.
struct RequestState {
  std::string server;  // name of the server that sent the state; no other server receives it
  std::string token;   // JSON string, as the server wrote it; empty if the server sent no state
};

}  // namespace bulkhead
