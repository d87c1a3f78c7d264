#include "route/server_subscriptions.hpp"

#include <algorithm>
#include <utility>

#include "bulkhead/cpp/basics.hpp"
#include "mcp/for_each.hpp"
#include "route/lane_host.hpp"
#include "route/upstream.hpp"

namespace bulkhead {

void ServerSubscriptions::take(Exchange &e) {
  e.local = true;
  if (e.method != mcp::Method::resources_subscribe) {
    listening_.watches_changed();
    return answer(e.id, true, {});
  }
  const auto watch = lane_.watches.find(e.call->name);
  const bool known = watch != lane_.watches.end();
  if (known && reports(watch->second)) return answer(e.id, true, {});
  listening_.subscribe(known ? watch->second.listen : 0);
}

// Responds to a client's subscription request. If the server has not accepted it, `failure` is the
// reason, or empty if the server has acknowledged other resources only.
void ServerSubscriptions::answer(std::uint64_t exchange, bool accepted, std::string_view failure) {
  const Exchange *e = host_.exchanges().get(exchange);
  if (e == nullptr || e->call == nullptr) return;
  if (!accepted) {
    const bool failed = !failure.empty();
    const std::string reason =
        failed ? std::string(failure) : "it does not report changes of \"" + e->call->name + "\"";
    return host_.fail_call(*e->call, failed ? code::internal_error : code::invalid_params,
                           wire_.about(reason), BH_OUTCOME_ERROR);
  }
  const std::string text =
      R"({"jsonrpc":"2.0","id":)" + std::to_string(exchange) + R"(,"result":{}})";
  mcp::Scan scan;
  mcp::ScanError error;
  if (mcp::scan(text, &scan, &error)) host_.answer_call(*e->call, {text, &scan});
}

// Responds to the subscribe requests whose resource was in the listen request, and to those that
// the client has already undone. Newer requests wait for the next listen request.
void ServerSubscriptions::answer_all(std::uint64_t listen, std::string_view failure) {
  std::vector<std::pair<std::uint64_t, bool>> done;
  for (const Exchange *e = lane_.exchanges.head; e != nullptr; e = e->lane_next) {
    if (!e->local) continue;
    const Lane *at = e->call->watches;
    if (at != nullptr && at != &lane_) {
      done.emplace_back(e->id, true);  // the subscription has been moved to another lane
      continue;
    }
    const auto watch = lane_.watches.find(e->call->name);
    const bool known = watch != lane_.watches.end();
    if (known && watch->second.listen != listen) continue;
    done.emplace_back(e->id, known && reports(watch->second));
  }
  for (const auto &[exchange, on] : done) answer(exchange, on, failure);
}

// Copies no URIs: the array may be as large as limits.message_bytes. Room for unescaping the
// longest URI is reserved first, because for_each_item() is noexcept, so its callback must not
// allocate.
void ServerSubscriptions::accepted(std::uint64_t exchange, std::string_view uris) {
  std::size_t longest = 0;
  for (auto &[uri, watch] : lane_.watches) {
    if (watch.listen != exchange) continue;
    watch.on = false;
    longest = std::max(longest, uri.size());
  }
  if (uris.starts_with('[')) {
    const std::size_t most = longest * 6 + 2;  // each character as \uXXXX, and the quotes
    std::string scratch;
    scratch.reserve(most);
    mcp::for_each_item(uris, [&](std::string_view item) {
      if (item.size() > most || !item.starts_with('"')) return;
      const auto watch = lane_.watches.find(mcp::unquote(item, &scratch));
      if (watch != lane_.watches.end() && watch->second.listen == exchange) watch->second.on = true;
    });
  }
  answer_all(exchange, {});
}

void ServerSubscriptions::rejected(std::uint64_t exchange, std::string_view reason) {
  answer_all(exchange, reason.empty() ? "subscriptions/listen failed" : reason);
}

std::vector<std::string> ServerSubscriptions::watched() const {
  std::vector<std::string> uris;
  for (const auto &[uri, watch] : lane_.watches) uris.push_back(uri);
  return uris;
}

bool ServerSubscriptions::send_listen(const std::string &filter, std::uint64_t *exchange) {
  Exchange *e = wire_.own_exchange(Purpose::listen, mcp::Method::subscriptions_listen, 0);
  if (e == nullptr) return false;
  e->takes_place = false;
  *exchange = e->id;
  for (auto &[uri, watch] : lane_.watches) watch.listen = e->id;
  const RequestMeta &meta = conversation_.meta_for(nullptr);
  wire_.send_own(*e, meta.added_to(R"({"notifications":)" + filter + "}"), 0,
                 conversation_.headers_for(*conversation_.edge(), e->method));
  return true;
}

void ServerSubscriptions::end_listen(std::uint64_t exchange) {
  if (host_.exchanges().get(exchange) == nullptr) return;
  lane_.retract(exchange, true, {});
  if (Exchange *e = host_.exchanges().get(exchange)) host_.drop(*e);
}

// If the connection does not keep the order of messages, a list that arrived before the first
// acknowledgement may have been sent before the server started to report changes. A list that is
// still arriving is not read again, so a change during that time is missed until the next change.
void ServerSubscriptions::changes_missed(bool interrupted) {
  const bool in_order = !may_take_headers(lane_.upstream().def());
  for (const ItemKind kind : all_item_kinds) {
    const bool resources = kind == ItemKind::resource || kind == ItemKind::resource_template;
    const bool listed = resources                  ? lane_.server_caps().resources
                        : kind == ItemKind::prompt ? lane_.server_caps().prompts
                                                   : lane_.server_caps().tools;
    const bool early = !in_order && listening_.reports(kind) && lists_.known(kind);
    if (listed && (interrupted || early)) lists_.changed(kind);
  }
}

void ServerSubscriptions::acknowledged(const Message &message) {
  const std::string_view params = message[message.scan->params];
  const std::string_view meta = message[message.scan->meta];
  if (!params.starts_with('{') || meta.empty()) return;
  const std::string_view id = mcp::member(meta, "io.modelcontextprotocol/subscriptionId");
  listening_.acknowledged(parse_number(id), mcp::member(params, "notifications"));
}

bool ServerSubscriptions::cancelled(const Message &message) {
  if (!conversation_.stateless()) return false;
  const std::uint64_t id = parse_number(message[message.scan->request_id]);
  Exchange *e = host_.exchanges().get(id);
  if (e == nullptr || e->lane != &lane_ || e->purpose != Purpose::listen) return false;
  host_.drop(*e);
  listening_.ended(id, false, "it has ended subscriptions/listen");
  lane_.abandon(id);
  return true;
}

void ServerSubscriptions::answered(std::uint64_t exchange, const mcp::Scan *scan,
                                   std::string_view message, const Error *failure) {
  if (failure != nullptr) return listening_.ended(exchange, false, failure->text);
  if (scan->kind != mcp::Kind::error) {
    return listening_.ended(exchange, false, "it has ended subscriptions/listen");
  }
  const std::string_view error = scan->error.in(message);
  const bool lasting = mcp::member(error, "code") == std::to_string(code::method_not_found);
  const auto shown = host_.without_credentials(error.substr(0, 8'192));
  std::string reason = "it has rejected subscriptions/listen";
  if (shown.has_value()) reason.append(": ").append(shown->substr(0, 300));
  listening_.ended(exchange, lasting, reason);
}

}  // namespace bulkhead
