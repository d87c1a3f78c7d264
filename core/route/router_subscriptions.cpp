// Subscriptions: several clients of a lane may watch one resource, and the upstream hears of the
// first and the last. Until it has agreed once, each client's own request goes to it, so that
// nobody is told of a subscription that is refused, or given up by somebody else.
//
// A watch is known by (lane, the server's own URI). A client may spell it in several ways; it is
// told of changes under the spelling that it used last.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "bulkhead/cpp/basics.hpp"
#include "route/router.hpp"
#include "route/splice.hpp"
#include "route/wire_lane.hpp"

namespace bulkhead {
namespace {

std::string uri_params(const std::string &uri) {
  std::string params = "{\"uri\":";
  mcp::append_quoted(&params, uri);
  return params + "}";
}

}  // namespace

// False: answered, since this server or this session cannot have it.
bool Router::subscription_possible(Session &s, Incoming &request, const Target &target) {
  if (!target.lane->server_caps().subscribe && target.lane->state() == LaneState::ready) {
    answers_.error(
        request, code::method_not_found,
        "server \"" + target.lane->upstream().name() + "\" has no resource subscriptions");
    return false;
  }
  if (request.message.scan->method == mcp::Method::resources_subscribe &&
      s.subscriptions.size() >= limits().subscriptions_per_session) {
    answers_.error(request, code::timeout,
                   "too many subscriptions (limits.subscriptions_per_session = " +
                       std::to_string(limits().subscriptions_per_session) + ")");
    return false;
  }
  return true;
}

// True: answered here.
bool Router::answer_subscription(Exchange &e, std::string_view message, const Target &target) {
  Session &s = *e.session;
  Lane &lane = *target.lane;
  // A policy may have taken so long that the lane is nobody's, or another session's.
  const auto &own = s.view->lanes;
  if (std::find(own.begin(), own.end(), &lane) == own.end()) {
    fail_exchange(e, code::internal_error,
                  "server \"" + lane.upstream().name() +
                      "\" was changed, or the session began anew, before a policy had decided; "
                      "it has not run: send it again",
                  BH_OUTCOME_ERROR);
    return true;
  }
  if (e.method == mcp::Method::resources_subscribe) {
    if (!subscribe(e, lane, std::string(target.range.in(message)))) return false;
  } else {
    std::erase(s.to_subscribe, target.range.in(message));
    remove_watcher(lane, e.name, s);
    if (!lane.watches.contains(e.name)) return false;
  }
  const ReplyTo reply = e.reply;
  const std::string id = e.client_id;
  finish(e, BH_OUTCOME_OK, 0, {}, {}, "{}");
  answers_.result(reply, id, "{}");
  return true;
}

// True: the upstream has agreed to it before.
bool Router::subscribe(Exchange &e, Lane &lane, const std::string &token) {
  Session &s = *e.session;
  const auto former_use = s.subscriptions.find(token);
  if (former_use != s.subscriptions.end() &&
      (former_use->second.lane != &lane || former_use->second.original != e.name)) {
    forget_subscription(s, token);  // of the same spelling when names were others
  }
  Lane::Watch &watch = lane.watches[e.name];
  const auto [at, fresh] = watch.clients.try_emplace(s.handle);
  Lane::Watch::Client &client = at->second;
  if (!fresh && client.token != token) s.subscriptions.erase(client.token);
  client.token = token;
  s.subscriptions.insert_or_assign(token, Session::Subscription{&lane, e.name});
  save(s);
  if (watch.on) return true;
  if (Exchange *former = exchanges_.get(client.asking)) former->watches = nullptr;
  client.asking = e.id;
  e.watches = &lane;
  return false;
}

// The request of a client that watches has come to an end, with the upstream's word or otherwise.
// What the upstream has refused needs no unsubscribing; what it may have agreed to does.
void Router::finish_subscription(Exchange &e, std::uint32_t outcome) {
  Lane &lane = *std::exchange(e.watches, nullptr);
  const std::string original = e.name;
  bool left = false;
  const auto at = lane.watches.find(original);
  if (at != lane.watches.end() && outcome == BH_OUTCOME_OK) {
    at->second.on = true;
    at->second.clients[e.session->handle].asking = 0;
  } else if (at != lane.watches.end()) {
    const bool subscribed = at->second.on || outcome != BH_OUTCOME_ERROR;
    remove_watcher(lane, original, *e.session);
    left = subscribed && !lane.watches.contains(original);
  }
  drop(e);
  if (left) lane.request_quietly(mcp::Method::resources_unsubscribe, uri_params(original));
}

// Also of the session's own list.
void Router::remove_watcher(Lane &lane, const std::string &original, Session &s) {
  const auto at = lane.watches.find(original);
  if (at == lane.watches.end()) return;
  const auto client = at->second.clients.find(s.handle);
  if (client == at->second.clients.end()) return;
  if (Exchange *e = exchanges_.get(client->second.asking)) e->watches = nullptr;
  s.subscriptions.erase(client->second.token);
  at->second.clients.erase(client);
  if (at->second.clients.empty()) lane.watches.erase(at);
  save(s);
}

void Router::forget_subscription(Session &s, const std::string &token) {
  const auto at = s.subscriptions.find(token);
  if (at == s.subscriptions.end()) return;
  const Session::Subscription sub = at->second;
  remove_watcher(*sub.lane, sub.original, s);
  if (!sub.lane->watches.contains(sub.original)) {
    sub.lane->request_quietly(mcp::Method::resources_unsubscribe, uri_params(sub.original));
  }
}

// The lane ends.
void Router::forget_watches(Lane &lane) {
  for (auto &[original, watch] : std::exchange(lane.watches, {})) {
    for (const auto &[handle, client] : watch.clients) {
      if (Session *s = session(handle)) {
        s->subscriptions.erase(client.token);
        save(*s);
      }
      if (Exchange *e = exchanges_.get(client.asking)) e->watches = nullptr;
    }
  }
}

// To the lane that takes the place of one that goes. It subscribes when it is ready, whether the
// old one's server has answered yet or not.
void Router::move_watcher(Lane &from, Lane &to, const std::string &original, const Session &s) {
  const auto at = from.watches.find(original);
  if (at == from.watches.end()) return;
  auto node = at->second.clients.extract(s.handle);
  if (at->second.clients.empty()) from.watches.erase(at);
  if (node.empty()) return;
  if (Exchange *e = exchanges_.get(node.mapped().asking)) e->watches = &to;
  Lane::Watch &watch = to.watches[original];
  watch.on = true;
  watch.clients.insert(std::move(node));
}

// A (new) connection of the lane is ready: what clients had set up on the old one is set up again.
// Requests that the upstream has not answered yet are on their way themselves.
void Router::lane_ready(Lane &lane) {
  std::vector<std::string> watched;
  for (const auto &[original, watch] : lane.watches) {
    if (watch.on) watched.push_back(original);
  }
  for (const std::string &uri : watched) {
    lane.request_quietly(mcp::Method::resources_subscribe, uri_params(uri));
  }
  update_log_level(lane);
}

// Those who watch `uri`, or what it is a part of: a server may report a part of what is watched.
// Each with the spelling of the URI that it is told.
std::vector<std::pair<bh_session, std::string>> Router::watchers_of(const Lane &lane,
                                                                    std::string_view uri) const {
  std::vector<std::pair<bh_session, std::string>> found;
  std::string part_token;
  std::string_view head = uri;  // nothing that is watched lies between its prefixes behind this
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
    if (uri.size() != same && !part) continue;
    if (part && part_token.empty()) {
      mcp::append_quoted(&part_token, names_.compose_uri(lane.upstream().name(), uri));
    }
    for (const auto &[handle, client] : watch.clients) {
      found.emplace_back(handle, part ? part_token : client.token);
    }
  }
  return found;
}

void Router::forward_updated(Lane &lane, std::string_view message, const mcp::Scan &scan) {
  if (scan.uri.empty() || lane.watches.empty()) return;
  std::string scratch;
  const std::string_view uri = mcp::unquote(scan.uri.in(message), &scratch);
  // All of them first: a client may do anything while it is told.
  for (const auto &[client, token] : watchers_of(lane, uri)) {
    Splice splice(message);
    splice.replace(scan.uri, token);
    const bh_str *parts = splice.parts();
    if (parts == nullptr) return message_lost(lane, scan.method);
    notifications_.to_client({client, 0, 0}, lane, nullptr, {message, &scan}, parts,
                             splice.count());
  }
}

}  // namespace bulkhead
