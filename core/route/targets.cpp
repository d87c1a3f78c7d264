#include "route/targets.hpp"

#include "bulkhead/cpp/json_writer.hpp"
#include "route/lane.hpp"
#include "route/protocol.hpp"
#include "route/view.hpp"

namespace bulkhead {
namespace {

// Maximum size of the name or URI in a request, as a JSON string. It is unescaped, looked up and
// evaluated by rules on the event loop.
constexpr std::size_t max_name_bytes = std::size_t{64} << 10;

// Where a request names its target, what kind of item the target is, and the error message if the
// name is missing.
struct Named {
  mcp::Range range;
  ItemKind kind;
  const char *missing;
};

Named naming_of(const mcp::Scan &scan, std::string_view message) {
  switch (scan.method) {
    case mcp::Method::tools_call:
      return {scan.name, ItemKind::tool, "tools/call requires params.name (a string)"};
    case mcp::Method::prompts_get:
      return {scan.name, ItemKind::prompt, "prompts/get requires params.name (a string)"};
    case mcp::Method::completion_complete: {
      // Unescape the type exactly as the server does. Otherwise, the server could complete a target
      // that the policy has not evaluated.
      std::string scratch;
      const std::string_view type =
          scan.ref_type.empty() ? "" : mcp::unquote(scan.ref_type.in(message), &scratch);
      constexpr const char *missing =
          "completion/complete requires params.ref with type ref/prompt and name, or type "
          "ref/resource and uri";
      if (type == "ref/prompt") return {scan.ref_name, ItemKind::prompt, missing};
      return {type == "ref/resource" ? scan.ref_uri : mcp::Range{}, ItemKind::resource, missing};
    }
    default:
      return {scan.uri, ItemKind::resource, "params.uri (a string) is missing"};
  }
}

}  // namespace

bool Targets::find(Session &s, Incoming &request, Target *out) {
  const Named naming = naming_of(*request.message.scan, request.message.bytes);
  if (naming.range.empty()) {
    needs_.answers.error(request, code::invalid_params, naming.missing);
    return false;
  }
  if (naming.range.size() > max_name_bytes) {
    const bool uri = naming.kind == ItemKind::resource;
    needs_.answers.error(request, code::invalid_params,
                         std::string(uri ? "the URI" : "the name") + " has more than " +
                             std::to_string(max_name_bytes) + " bytes");
    return false;
  }
  out->range = naming.range;
  std::string scratch;
  std::string_view name = mcp::unquote(request.message[naming.range], &scratch);
  View &view = *s.view;
  // Without prefixes, a name could belong to any server until all servers have responded or failed.
  if (!needs_.names.naming().prefix && view.lanes.size() > 1 && !Views::is_ready(view)) {
    needs_.views.wait(view, request);
    return false;
  }
  const Catalogue &merged = needs_.views.catalogue(view);
  bool found = false;
  if (naming.kind == ItemKind::resource) {
    if (auto resolved = merged.resolve_uri(name, needs_.names)) {
      out->resolved = *std::move(resolved);
      found = true;
    }
  } else if (const Resolved *resolved = merged.resolve(naming.kind, name)) {
    out->resolved = *resolved;
    found = true;
  }
  if (!found) {
    // If the name is an alias for a tool that does not exist, the error must name that tool.
    const std::string_view tool = needs_.names.aliased(name);
    if (naming.kind == ItemKind::tool && !merged.resolve(naming.kind, tool)) name = tool;
    const auto holders = merged.holders(naming.kind, name);
    if (!holders.empty()) {
      refuse_held(s, request, naming.kind, name, holders);
      return false;
    }
    needs_.views.wake_holders(view, naming.kind, name);
    if (!Views::is_ready(view) || needs_.views.awaits_holder(view, naming.kind, name, request)) {
      needs_.views.wait(view, request);
    } else {
      not_found(s, request, naming.kind, name);
    }
    return false;
  }
  out->lane = view.lanes[out->resolved.source];
  return true;
}

// Sends an error for an unprefixed name that cannot be used, either because several servers offer
// it or because the only server that offers it is unavailable.
void Targets::refuse_held(Session &s, Incoming &request, ItemKind kind, std::string_view name,
                          const std::vector<std::string_view> &holders) {
  if (holders.size() == 1 && answer_unavailable(s, request, holders.front())) return;
  needs_.answers.error(request, code::invalid_params,
                       std::string(facts(kind).noun) + " \"" + std::string(name.substr(0, 200)) +
                           "\" is ambiguous: servers " + quoted_list(holders) + " have a " +
                           std::string(facts(kind).noun) +
                           " with this name (set naming.prefix = \"always\")");
}

// If the server exists but cannot be called, sends an error with the reason and returns true.
bool Targets::answer_unavailable(const Session &s, Incoming &request, std::string_view server) {
  for (const auto &upstream : needs_.upstreams.all()) {
    if (server.empty() || upstream->name() != server) continue;
    if (upstream->def().disabled) {
      const std::string &why = upstream->def().disabled_reason;
      needs_.answers.error(request, code::internal_error,
                           "server \"" + upstream->name() + "\" is disabled" +
                               (why.empty() ? " in the profile" : ": " + why));
      return true;
    }
    for (const Lane *lane : s.view->lanes) {
      if (&lane->upstream() != upstream.get() || lane->can_take_calls()) continue;
      needs_.answers.error(
          request, code::internal_error,
          "server \"" + upstream->name() + "\" is not available: " + why_not(*lane));
      return true;
    }
  }
  return false;
}

// The lane's reason may contain text from the server, which must be hidden if a policy evaluates
// results.
std::string Targets::why_not(const Lane &lane) const {
  if (lane.reason().empty()) return "still connecting";
  return needs_.gate.observes() ? "see `bulkhead status`" : lane.reason();
}

void Targets::not_found(Session &s, Incoming &request, ItemKind kind, std::string_view name) {
  const auto split = needs_.names.split_uri(name);
  const std::string_view server = kind == ItemKind::resource
                                      ? (split.has_value() ? split->server : std::string_view{})
                                      : needs_.names.server_of(name);
  if (answer_unavailable(s, request, server)) return;
  const std::string shown(name.substr(0, 200));
  if (kind == ItemKind::resource) {
    std::string data = "{\"uri\":";
    bh::json::append_quoted(&data, shown);
    return needs_.answers.error(request, code::resource_not_found, "Resource not found: " + shown,
                                0, data + "}");
  }
  if (kind == ItemKind::prompt) {
    return needs_.answers.error(request, code::invalid_params, "Prompt not found: " + shown);
  }
  if (server.empty() && needs_.names.naming().prefix) {
    return needs_.answers.error(request, code::invalid_params,
                                "Tool name must be prefixed with its server's name, as in server" +
                                    needs_.names.naming().separator + "tool: " + shown);
  }
  needs_.answers.error(request, code::method_not_found, "Tool not found: " + shown);
}

}  // namespace bulkhead
