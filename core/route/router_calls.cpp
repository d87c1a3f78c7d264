// Requests that go to an upstream: resolve, gate (router_policy.cpp), dispatch. What is resolved
// here is what policy judges and what the lane sends; nobody looks the name up again.
#include <algorithm>
#include <string>

#include "bulkhead/cpp/basics.hpp"
#include "route/router.hpp"
#include "route/splice.hpp"
#include "route/wire_lane.hpp"

namespace bulkhead {
namespace {

// Which member names the target, and what it names.
struct Named {
  mcp::Range range;
  ItemKind kind;
  const char *missing;
};

Named naming_of(const mcp::Scan &scan, std::string_view message) {
  switch (scan.method) {
    case mcp::Method::tools_call:
      return {scan.name, ItemKind::tool, "tools/call needs params.name (a string)"};
    case mcp::Method::prompts_get:
      return {scan.name, ItemKind::prompt, "prompts/get needs params.name (a string)"};
    case mcp::Method::completion_complete: {
      // Unescaped, as the server will read it: what is judged here must be what it completes.
      std::string scratch;
      const std::string_view type =
          scan.ref_type.empty() ? "" : mcp::unquote(scan.ref_type.in(message), &scratch);
      constexpr const char *missing =
          "completion/complete needs params.ref with type ref/prompt and name, or type "
          "ref/resource and uri";
      if (type == "ref/prompt") return {scan.ref_name, ItemKind::prompt, missing};
      return {type == "ref/resource" ? scan.ref_uri : mcp::Range{}, ItemKind::resource, missing};
    }
    default:
      return {scan.uri, ItemKind::resource, "params.uri (a string) is missing"};
  }
}

bool is_subscription(mcp::Method method) {
  return method == mcp::Method::resources_subscribe || method == mcp::Method::resources_unsubscribe;
}

}  // namespace

void Router::call(Session &s, Incoming &request) {
  const mcp::Scan &scan = *request.message.scan;
  Target target;
  if (!find_target(s, request, &target)) return;
  if (is_subscription(scan.method)) {
    const auto refusal = subscriptions_.refusal(s, *target.lane, scan.method);
    if (refusal.error_code != 0) return answers_.error(request, refusal.error_code, refusal.text);
  }
  calls_.begin(s, request, std::move(target));
}

// False: answered, or waiting until all servers have answered or failed.
bool Router::find_target(Session &s, Incoming &request, Target *out) {
  const Named naming = naming_of(*request.message.scan, request.message.bytes);
  if (naming.range.empty()) {
    answers_.error(request, code::invalid_params, naming.missing);
    return false;
  }
  out->range = naming.range;
  std::string scratch;
  std::string_view name = mcp::unquote(request.message[naming.range], &scratch);
  View &view = *s.view;
  // Without prefix nobody knows whose a name is before every server has answered or failed.
  if (!names_.naming().prefix && view.lanes.size() > 1 && !Views::is_ready(view)) {
    views_.wait(view, request);
    return false;
  }
  const Catalogue &merged = views_.catalogue(view);
  bool found = false;
  if (naming.kind == ItemKind::resource) {
    if (auto resolved = merged.resolve_uri(name, names_)) {
      out->resolved = *std::move(resolved);
      found = true;
    }
  } else if (const Resolved *resolved = merged.resolve(naming.kind, name)) {
    out->resolved = *resolved;
    found = true;
  }
  if (!found) {
    // Says what is missing: the tool, or the name itself where it is an alias that is not used.
    const std::string_view tool = names_.aliased(name);
    if (naming.kind == ItemKind::tool && !merged.resolve(naming.kind, tool)) name = tool;
    const auto holders = merged.holders(naming.kind, name);
    if (!holders.empty()) {
      refuse_held(s, request, naming.kind, name, holders);
      return false;
    }
    views_.wake_holders(view, naming.kind, name);
    if (!Views::is_ready(view) || views_.awaits_holder(view, naming.kind, name, request)) {
      views_.wait(view, request);
    } else {
      not_found(s, request, naming.kind, name);
    }
    return false;
  }
  out->lane = view.lanes[out->resolved.source];
  return true;
}

// Of a name without prefix: several servers have it, or the only one is down.
void Router::refuse_held(Session &s, Incoming &request, ItemKind kind, std::string_view name,
                         const std::vector<std::string_view> &holders) {
  if (holders.size() == 1 && say_unavailable(s, request, holders.front())) return;
  answers_.error(request, code::invalid_params,
                 std::string(facts(kind).noun) + " \"" + std::string(name.substr(0, 200)) +
                     "\" is refused: servers " + quoted_list(holders) +
                     " have the same name (naming.prefix = \"always\" tells them apart)");
}

// Answers with why this server cannot be called. False: it can, or there is none.
bool Router::say_unavailable(const Session &s, Incoming &request, std::string_view server) {
  for (const auto &upstream : upstreams_.all()) {
    if (server.empty() || upstream->name() != server) continue;
    if (upstream->def().disabled) {
      const std::string &why = upstream->def().disabled_reason;
      answers_.error(request, code::internal_error,
                     "server \"" + upstream->name() + "\" is disabled" +
                         (why.empty() ? " in the profile" : ": " + why));
      return true;
    }
    for (const Lane *lane : s.view->lanes) {
      if (&lane->upstream() != upstream.get() || lane->can_take_calls()) continue;
      answers_.error(request, code::internal_error,
                     "server \"" + upstream->name() + "\" is not available: " + why_not(*lane));
      return true;
    }
  }
  return false;
}

// The reason may be the server's own words in part, which a policy that reads results has not seen.
std::string Router::why_not(const Lane &lane) const {
  if (lane.reason().empty()) return "still connecting";
  return gate_.observes() ? "`bulkhead status` says why" : lane.reason();
}

void Router::not_found(Session &s, Incoming &request, ItemKind kind, std::string_view name) {
  const auto split = names_.split_uri(name);
  const std::string_view server = kind == ItemKind::resource
                                      ? (split.has_value() ? split->server : std::string_view{})
                                      : names_.server_of(name);
  if (say_unavailable(s, request, server)) return;
  const std::string shown(name.substr(0, 200));
  if (kind == ItemKind::resource) {
    std::string data = "{\"uri\":";
    mcp::append_quoted(&data, shown);
    return answers_.error(request, code::resource_not_found, "Resource not found: " + shown, 0,
                          data + "}");
  }
  if (kind == ItemKind::prompt) {
    return answers_.error(request, code::invalid_params, "Prompt not found: " + shown);
  }
  if (server.empty() && names_.naming().prefix) {
    return answers_.error(request, code::invalid_params,
                          "Tool name must be prefixed with its server's name, as in server" +
                              names_.naming().separator + "tool: " + shown);
  }
  answers_.error(request, code::method_not_found, "Tool not found: " + shown);
}

}  // namespace bulkhead
