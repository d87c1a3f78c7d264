#include "route/subscriptions.hpp"

#include <algorithm>

#include "bulkhead/cpp/basics.hpp"
#include "bulkhead/cpp/json_writer.hpp"
#include "route/client_meta.hpp"
#include "route/listen_messages.hpp"
#include "route/protocol.hpp"
#include "route/request_meta.hpp"
#include "route/splice.hpp"
#include "route/upstream.hpp"

namespace bulkhead {
namespace {

std::string uri_params(const std::string &uri) {
  std::string params = "{\"uri\":";
  bh::json::append_quoted(&params, uri);
  return params + "}";
}

}  // namespace

Subscriptions::Refusal Subscriptions::refusal(const Session &s, const Lane &lane,
                                              mcp::Method method) const {
  if (!lane.server_caps().subscribe && lane.state() == LaneState::ready) {
    return {code::method_not_found,
            "server \"" + lane.upstream().name() + "\" does not support resource subscriptions"};
  }
  const std::uint64_t most = needs_.limits.subscriptions_per_session;
  if (method == mcp::Method::resources_subscribe && s.subscriptions.size() >= most) {
    return {code::timeout, "too many subscriptions (limits.subscriptions_per_session = " +
                               std::to_string(most) + ")"};
  }
  return {};
}

bool Subscriptions::begin(Call &call, Lane &lane, const std::string &token) {
  if (call.method == mcp::Method::resources_subscribe) return subscribe(call, lane, token);
  Session &s = *call.session;
  std::erase(s.to_subscribe, token);
  // Do not send the server the URI of a resource that the client does not watch.
  const auto watch = lane.watches.find(call.name);
  if (watch == lane.watches.end() || !watch->second.clients.contains(s.handle)) return true;
  remove_watcher(lane, call.name, s);
  return lane.watches.contains(call.name);
}

// Returns true if the server has already accepted the subscription.
bool Subscriptions::subscribe(Call &call, Lane &lane, const std::string &token) {
  Session &s = *call.session;
  const auto former_use = s.subscriptions.find(token);
  if (former_use != s.subscriptions.end() &&
      (former_use->second.lane != &lane || former_use->second.original != call.name)) {
    forget(s, token);  // this form of the URI was used before names changed
  }
  Lane::Watch &watch = lane.watches[call.name];
  const auto [at, fresh] = watch.clients.try_emplace(s.handle);
  Lane::Watch::Client &client = at->second;
  if (!fresh && client.token != token) s.subscriptions.erase(client.token);
  client.token = token;
  s.subscriptions.insert_or_assign(token, Session::Subscription{&lane, call.name});
  needs_.on_changed(s);
  if (lane.reports(watch)) return true;
  if (Call *former = needs_.calls.get(client.asking)) former->watches = nullptr;
  client.asking = call.id;
  call.watches = &lane;
  return false;
}

bool Subscriptions::ended(Call &call, std::uint32_t outcome) {
  Lane &lane = *std::exchange(call.watches, nullptr);
  const auto at = lane.watches.find(call.name);
  if (at == lane.watches.end()) return false;
  if (outcome == BH_OUTCOME_OK) {
    // For a server without this method, the newest acknowledgement of subscriptions/listen decides.
    if (lane.takes(mcp::Method::resources_subscribe)) at->second.on = true;
    at->second.clients[call.session->handle].asking = 0;
    return false;
  }
  const bool subscribed = at->second.on || outcome != BH_OUTCOME_ERROR;
  remove_watcher(lane, call.name, *call.session);
  return subscribed && !lane.watches.contains(call.name);
}

void Subscriptions::unsubscribe(Lane &lane, const std::string &uri) {
  lane.request_quietly(mcp::Method::resources_unsubscribe, uri_params(uri));
}

// ---- ends ------------------------------------------------------------------------------------

// Removes a client from the watch, and the subscription from its session.
void Subscriptions::remove_watcher(Lane &lane, const std::string &uri, Session &s) {
  const auto at = lane.watches.find(uri);
  if (at == lane.watches.end()) return;
  const auto client = at->second.clients.find(s.handle);
  if (client == at->second.clients.end()) return;
  if (Call *call = needs_.calls.get(client->second.asking)) call->watches = nullptr;
  s.subscriptions.erase(client->second.token);
  at->second.clients.erase(client);
  if (at->second.clients.empty()) lane.watches.erase(at);
  needs_.on_changed(s);
}

void Subscriptions::forget(Session &s, const std::string &token) {
  const auto at = s.subscriptions.find(token);
  if (at == s.subscriptions.end()) return;
  const Session::Subscription sub = at->second;
  remove_watcher(*sub.lane, sub.original, s);
  if (!sub.lane->watches.contains(sub.original)) unsubscribe(*sub.lane, sub.original);
}

void Subscriptions::forget_all(Session &s) {
  while (!s.subscriptions.empty()) forget(s, std::string(s.subscriptions.begin()->first));
}

void Subscriptions::forget_lane(Lane &lane) {
  for (auto &[uri, watch] : std::exchange(lane.watches, {})) {
    for (const auto &[handle, client] : watch.clients) {
      if (Session *s = needs_.sessions.find(handle)) {
        s->subscriptions.erase(client.token);
        needs_.on_changed(*s);
      }
      if (Call *call = needs_.calls.get(client.asking)) call->watches = nullptr;
    }
  }
}

void Subscriptions::move(Session &s, const std::string &token, Lane *to) {
  const auto at = s.subscriptions.find(token);
  if (at == s.subscriptions.end()) return;
  const Session::Subscription sub = at->second;
  if (to == nullptr) return remove_watcher(*sub.lane, sub.original, s);
  move_watcher(*sub.lane, *to, sub.original, s);
  at->second.lane = to;
}

void Subscriptions::move_watcher(Lane &from, Lane &to, const std::string &uri, const Session &s) {
  const auto at = from.watches.find(uri);
  if (at == from.watches.end()) return;
  auto node = at->second.clients.extract(s.handle);
  if (at->second.clients.empty()) from.watches.erase(at);
  if (node.empty()) return;
  if (Call *call = needs_.calls.get(node.mapped().asking)) call->watches = &to;
  Lane::Watch &watch = to.watches[uri];
  watch.on = true;
  watch.clients.insert(std::move(node));
}

void Subscriptions::lane_ready(Lane &lane) {
  std::vector<std::string> watched;
  for (const auto &[uri, watch] : lane.watches) {
    if (watch.on) watched.push_back(uri);
  }
  for (const std::string &uri : watched) {
    lane.request_quietly(mcp::Method::resources_subscribe, uri_params(uri));
  }
}

// ---- updates of resources --------------------------------------------------------------------

// Returns the clients that watch `uri` or one of its parent resources, each with the URI token to
// send to it. Parents are included because a server may report an update to only a part of a
// watched resource.
std::vector<std::pair<bh_session, std::string>> Subscriptions::watchers_of(
    const Lane &lane, std::string_view uri) const {
  std::vector<std::pair<bh_session, std::string>> found;
  std::string_view head = uri;  // no prefix of `uri` that is longer than this is watched
  for (auto at = lane.watches.upper_bound(head); at != lane.watches.begin();) {
    const auto &[original, watch] = *--at;
    std::size_t same = 0;
    while (same < original.size() && same < head.size() && original[same] == head[same]) ++same;
    if (same < original.size()) {
      if (same == 0) break;
      head = head.substr(0, same);
      at = lane.watches.upper_bound(head);
      continue;
    }
    const bool part = uri.size() > same && uri[same] == '/';
    if (uri.size() == same || part) add_watchers(lane, watch, uri, part, &found);
  }
  return found;
}

void Subscriptions::add_watchers(const Lane &lane, const Lane::Watch &watch, std::string_view uri,
                                 bool part,
                                 std::vector<std::pair<bh_session, std::string>> *out) const {
  std::string token;
  if (part) bh::json::append_quoted(&token, needs_.names.compose_uri(lane.upstream().name(), uri));
  for (const auto &[handle, client] : watch.clients) {
    out->emplace_back(handle, part ? token : client.token);
  }
}

void Subscriptions::updated(Lane &lane, const Message &message) {
  const mcp::Range range = message.scan->uri;
  if (range.empty() || lane.watches.empty()) return;
  std::string scratch;
  const std::string_view uri = mcp::unquote(message[range], &scratch);
  // The clients are collected first, because the watches may change while a client is notified.
  for (const auto &[handle, token] : watchers_of(lane, uri)) {
    const Session *client = needs_.sessions.find(handle);
    if (client == nullptr) continue;
    const bool listens = client->is_sessionless();
    if (listens && !client->ready) continue;  // not acknowledged yet
    Splice splice(message.bytes);
    splice.replace(range, token);
    // The subscription id in the message belongs to the gateway's own subscription, so the client
    // must not receive it.
    const bool other_members = remove_subscription_id(&splice, message);
    RequestMeta meta;
    if (listens) {
      meta.set(subscription_member(client->request_id));
      meta.add_to(&splice, message, other_members);
    }
    const bh_str *parts = splice.parts();
    if (parts == nullptr) return needs_.on_lost(lane, message.scan->method);
    const ReplyTo to{handle, listens ? client->stream : 0, 0};
    needs_.notifications.to_client(to, lane, nullptr, message, parts, splice.count());
  }
}

// ---- rules -----------------------------------------------------------------------------------

void Subscriptions::judge_again(bh_session handle) {
  std::vector<std::string> tokens;
  if (const Session *s = needs_.sessions.find(handle)) {
    for (const auto &[token, subscription] : s->subscriptions) tokens.push_back(token);
  }
  for (const std::string &token : tokens) {
    // The session is looked up in each iteration, because it may end while the server is notified
    // of the end of a subscription.
    const Session *s = needs_.sessions.find(handle);
    if (s == nullptr) return;
    const auto at = s->subscriptions.find(token);
    if (at == s->subscriptions.end()) continue;
    JudgedEvent event;
    event.kind = JudgedEvent::Kind::subscription;
    event.server = at->second.lane->upstream().name();
    event.method = mcp::Method::resources_subscribe;
    event.method_text = mcp::to_string(event.method);
    event.tool = at->second.original;
    event.id = token;
    needs_.events.judge(std::move(event), *s, {});
  }
}

// Removes the subscription that the policy has refused, unless the client has replaced it while the
// decision was pending.
void Subscriptions::refused(const JudgedEvent &event) {
  Session *s = needs_.sessions.find(event.to.session);
  if (s == nullptr) return;
  const auto at = s->subscriptions.find(event.id);
  if (at != s->subscriptions.end() && at->second.original == event.tool) forget(*s, event.id);
}

}  // namespace bulkhead
