#include "route/conversation.hpp"

#include "mcp/methods.hpp"
#include "route/stateless_server_edge.hpp"

namespace bulkhead {

// A client without a session answers requests for input itself, so the roots of the profile are
// declared for such a client only if it has declared roots as well.
const RequestMeta &Conversation::meta_for(const Session *client, bool tasks) {
  const int level = client == nullptr || !server_caps_.logging ? -1 : client->log_level;
  ClientCaps caps = tasks ? caps_ | cap::tasks : caps_;
  const bool rootless =
      client != nullptr && client->is_sessionless() && (client->caps & cap::roots) == 0;
  if (rootless) caps &= ~(cap::roots | cap::roots_changed);
  const auto [at, fresh] = metas_.try_emplace({level, caps});
  if (fresh) at->second.set(edge_->request_meta(caps, level));
  return at->second;
}

// Composes headers if the server's connector may support them (may_take_headers). A connector that
// does not support headers ignores them.
Result<std::span<const bh_header>> Conversation::headers_for(const ServerEdge &edge,
                                                             const RequestHeaders::Values &values) {
  if (!edge.stateless() || !may_take_headers(def_)) return std::span<const bh_header>{};
  return headers_.of(StatelessServerEdge::revision, values);
}

std::span<const bh_header> Conversation::headers_for(const ServerEdge &edge, mcp::Method method) {
  return headers_for(edge, {method, mcp::to_string(method), {}, {}})
      .value_or(std::span<const bh_header>{});
}

void Conversation::use_tools(ItemList *tools,
                             const std::function<void(const std::string &text)> &on_removed) {
  if (stateless() && may_take_headers(def_)) headers_.use_tools(tools, on_removed);
}

}  // namespace bulkhead
