// Reports changes at a server without sessions to the lane, using subscriptions/listen in place of
// resources/subscribe.
#include "bulkhead/cpp/basics.hpp"
#include "route/lane_host.hpp"
#include "route/splice.hpp"
#include "route/upstream.hpp"
#include "route/wire_lane.hpp"

namespace bulkhead {

// Handles a client's resources/subscribe or resources/unsubscribe request for a server that does
// not have these methods. No message is sent to the server for this request alone, so it does not
// count as in flight.
void WireLane::take_subscription(Exchange &e) {
  e.sent = true;
  e.takes_place = false;
  if (e.method == mcp::Method::resources_subscribe) {
    return listening_.subscribe(e.id, e.call->name);
  }
  listening_.watches_changed();
  subscribed(e.id, true);
}

void WireLane::subscribed(std::uint64_t exchange, bool accepted) {
  const Exchange *e = host_.exchanges().get(exchange);
  if (e == nullptr || e->call == nullptr) return;
  if (!accepted) {
    return host_.fail_call(*e->call, code::invalid_params,
                           about("it does not report changes of \"" + e->call->name + "\""),
                           BH_OUTCOME_ERROR);
  }
  const std::string text =
      R"({"jsonrpc":"2.0","id":)" + std::to_string(exchange) + R"(,"result":{}})";
  mcp::Scan scan;
  mcp::ScanError error;
  if (mcp::scan(text, &scan, &error)) host_.answer_call(*e->call, {text, &scan});
}

std::vector<std::string> WireLane::watched() const {
  std::vector<std::string> uris;
  for (const auto &[uri, watch] : watches) uris.push_back(uri);
  return uris;
}

std::uint64_t WireLane::send_listen(const std::string &filter) {
  Exchange *e = host_.exchanges().open();
  if (e == nullptr) return 0;
  e->purpose = Purpose::listen;
  e->method = mcp::Method::subscriptions_listen;
  e->start_ns = host_.reactor().now_ns();
  e->timeout_ms = 0;
  e->takes_place = false;
  attach(*e);
  const std::uint64_t number = e->id;
  const Digits id(number);
  const std::string params = meta_for(nullptr).added_to(R"({"notifications":)" + filter + "}");
  const bh_str parts[] = {bh::str(R"({"jsonrpc":"2.0","id":)"), bh::str(id.view()),
                          bh::str(R"(,"method":"subscriptions/listen","params":)"), bh::str(params),
                          bh::str("}")};
  send_request(*e, parts, 5, 0, headers_for(*edge_, e->method));
  return host_.exchanges().get(number) == nullptr ? 0 : number;
}

void WireLane::end_listen(std::uint64_t exchange) {
  if (host_.exchanges().get(exchange) == nullptr) return;
  retract(exchange, true, {}, nullptr);
  if (Exchange *e = host_.exchanges().get(exchange)) host_.drop(*e);
}

void WireLane::changes_missed() {
  for (const ItemKind kind : all_item_kinds) {
    const bool resources = kind == ItemKind::resource || kind == ItemKind::resource_template;
    const bool listed = resources                  ? server_caps_.resources
                        : kind == ItemKind::prompt ? server_caps_.prompts
                                                   : server_caps_.tools;
    if (listed) list_changed(kind);
  }
}

void WireLane::listen_acknowledged(const Message &message) {
  const std::string_view params = message[message.scan->params];
  const std::string_view meta = message[message.scan->meta];
  if (!params.starts_with('{') || meta.empty()) return;
  const std::string_view id = mcp::member(meta, "io.modelcontextprotocol/subscriptionId");
  listening_.acknowledged(parse_number(id), mcp::member(params, "notifications"));
}

// Called when the subscriptions/listen request has ended. If it ended without a response, `scan` is
// null.
void WireLane::listen_answered(std::uint64_t exchange, const mcp::Scan *scan,
                               std::string_view message) {
  const bool error = scan != nullptr && scan->kind == mcp::Kind::error;
  const bool lasting = error && mcp::member(scan->error.in(message), "code") ==
                                    std::to_string(code::method_not_found);
  listening_.ended(exchange, lasting);
}

}  // namespace bulkhead
