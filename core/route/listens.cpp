#include "route/listens.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "bulkhead/cpp/basics.hpp"
#include "mcp/for_each.hpp"
#include "route/handshake.hpp"
#include "route/lane.hpp"
#include "route/listen_messages.hpp"
#include "route/protocol.hpp"

namespace bulkhead {
namespace {

struct ListFlag {
  std::string_view member;
  ItemKind kind;
};
constexpr std::array<ListFlag, 3> list_flags = {{{"toolsListChanged", ItemKind::tool},
                                                 {"promptsListChanged", ItemKind::prompt},
                                                 {"resourcesListChanged", ItemKind::resource}}};

// Returns a filter that describes the notifications that the gateway will send.
std::string honoured(const std::vector<ItemKind> &kinds,
                     const std::vector<std::string> *resources) {
  std::string text = "{";
  const auto add = [&text](std::string_view member, std::string_view value) {
    text.append(text.size() > 1 ? ",\"" : "\"").append(member).append("\":").append(value);
  };
  for (const ListFlag &flag : list_flags) {
    if (std::find(kinds.begin(), kinds.end(), flag.kind) != kinds.end()) add(flag.member, "true");
  }
  if (resources != nullptr) {
    std::string uris = "[";
    for (const std::string &uri : *resources) uris.append(uris.size() > 1 ? "," : "").append(uri);
    add("resourceSubscriptions", uris + "]");
  }
  return text + "}";
}

std::string subscribe_request(const std::string &uri) {
  return R"({"jsonrpc":"2.0","id":0,"method":"resources/subscribe","params":{"uri":)" + uri + "}}";
}

}  // namespace

Listens::~Listens() {
  needs_.reactor.forget(this);
}

// ---- opening ---------------------------------------------------------------------------------

void Listens::begin(Session &s, Incoming &request) {
  const auto refuse = [&](std::int32_t error_code, std::string_view text) {
    needs_.answers.error(request, error_code, text);
  };
  if (s.answers_only) {
    return refuse(code::method_not_found,
                  "subscriptions/listen requires a client that accepts notifications");
  }
  const std::string_view params = request.message[request.message.scan->params];
  const std::uint64_t most = needs_.profile.limits.listens_per_client;
  const auto same = std::count_if(open_.begin(), open_.end(),
                                  [&](const auto &one) { return one.second.scope == s.scope; });
  if (static_cast<std::uint64_t>(same) >= most) {
    return refuse(code::internal_error,
                  "too many subscriptions/listen requests are open "
                  "(limits.listens_per_client = " +
                      std::to_string(most) + "); close one of them");
  }
  Listen listen;
  if (!read_filter(mcp::member(params, "notifications"), s, &listen)) {
    return refuse(code::invalid_params,
                  "subscriptions/listen requires params.notifications: an object with the booleans "
                  "toolsListChanged, promptsListChanged and resourcesListChanged, and "
                  "resourceSubscriptions, a list of URIs");
  }
  s.request_id = request.id();
  listen.owner = this;
  listen.reply = request.reply;
  listen.message = ParkedMessage(request.message);
  listen.start_ns = request.start_ns;
  listen.scope = s.scope;
  listen.load = s.load;
  request.recorded = true;  // recorded when the listen request is acknowledged
  const bh_session handle = s.handle;
  const bool waits = !listen.resources.empty();
  Listen &open = open_.emplace(handle, std::move(listen)).first->second;
  if (!waits) return acknowledge(open);
  open.timer =
      needs_.reactor.timer_start(this, resource_wait_ms, bh::callback(&open, [](Listen &l) {
                                   l.timer = 0;
                                   l.owner->acknowledge(l);
                                 }));
  subscribe(handle);
}

bool Listens::read_filter(std::string_view filter, const Session &s, Listen *out) const {
  if (!filter.starts_with('{')) return false;
  const Expose &expose = needs_.profile.expose;
  for (const ListFlag &flag : list_flags) {
    const std::string_view value = mcp::member(filter, flag.member);
    if (!value.empty() && value != "true" && value != "false") return false;
    const bool offered = expose.list_changed && is_exposed(expose, facts(flag.kind).list_method);
    if (value == "true" && offered && !s.answers_only) out->kinds.push_back(flag.kind);
  }
  const std::string_view uris = mcp::member(filter, "resourceSubscriptions");
  if (uris.empty()) return true;
  if (!uris.starts_with('[')) return false;
  out->asks_for_resources = is_exposed(expose, mcp::Method::resources_subscribe);
  const std::size_t most = needs_.profile.limits.subscriptions_per_session;
  return mcp::for_each_item(uris, [&](std::string_view uri) {
    if (!uri.starts_with('"')) return false;
    const auto &known = out->resources;
    const bool fresh = std::find(known.begin(), known.end(), uri) == known.end();
    if (fresh && out->asks_for_resources && known.size() < most) out->resources.emplace_back(uri);
    return true;
  });
}

// Sends subscribe requests on behalf of the client, as many as may be in flight. Any of these
// requests may end the session.
void Listens::subscribe(bh_session handle) {
  const std::uint64_t most = needs_.profile.limits.in_flight_per_session;
  for (;;) {
    const auto at = open_.find(handle);
    Session *s = needs_.sessions.find(handle);
    if (at == open_.end() || s == nullptr) return;
    Listen &listen = at->second;
    if (listen.next == listen.resources.size() || listen.load->subscribing >= most) return;
    const std::string message = subscribe_request(listen.resources[listen.next++]);
    mcp::Scan scan;
    mcp::ScanError error;
    if (!mcp::scan(message, &scan, &error)) {
      proceed_later();
      continue;
    }
    ++listen.requests;
    ++listen.load->subscribing;
    const std::uint64_t silent =
        needs_.answers.batches().open_silent({handle, 0, 0}, [this, handle] { settled(handle); });
    Incoming request{{handle, 0, silent}, {message, &scan}, needs_.reactor.now_ns()};
    request.recorded = true;  // gateway requests are recorded only if they become calls
    needs_.requests.answer(*s, request);
  }
}

// This function is called before the result of the subscribe call is stored, so the next step is
// deferred to the end of the current iteration of the event loop.
void Listens::settled(bh_session handle) {
  const auto at = open_.find(handle);
  if (at == open_.end()) return;
  --at->second.requests;
  --at->second.load->subscribing;
  proceed_later();
}

void Listens::proceed_later() {
  if (std::exchange(proceeding_, true)) return;
  needs_.reactor.defer(this, bh::callback<&Listens::proceed>(this));
}

// All listen requests are considered, because those of one client share a limit.
void Listens::proceed() {
  proceeding_ = false;
  std::vector<bh_session> waiting;
  for (const auto &[handle, listen] : open_) {
    if (!listen.acknowledged) waiting.push_back(handle);
  }
  for (const bh_session handle : waiting) {
    subscribe(handle);
    const auto at = open_.find(handle);
    if (at == open_.end()) continue;
    Listen &listen = at->second;
    if (listen.requests == 0 && listen.next == listen.resources.size()) acknowledge(listen);
  }
}

// Ends the subscribe requests that have no response yet: those that wait for lists, and calls.
void Listens::end_requests(Session &s, Listen &listen) {
  listen.next = listen.resources.size();
  if (listen.requests == 0) return;
  for (const View::Waiter &waiter : Views::take_waiters(s)) needs_.answers.none(waiter.reply);
  for (Call *call = s.open_calls.head; call != nullptr; call = s.open_calls.head) {
    needs_.ends.end_unanswered(*call, "the subscription was not accepted within " +
                                          std::to_string(resource_wait_ms) + " ms");
    if (s.open_calls.head == call) return;  // the calls end after the current step
  }
}

// ---- the acknowledgement ---------------------------------------------------------------------

// Sends the acknowledgement. Subscriptions that have not been accepted by now are removed: they are
// not in the acknowledgement, so the client does not expect their notifications.
void Listens::acknowledge(Listen &listen) {
  Session *s = needs_.sessions.find(listen.reply.session);
  if (s == nullptr || std::exchange(listen.acknowledged, true)) return;
  needs_.reactor.timer_cancel(std::exchange(listen.timer, 0));
  end_requests(*s, listen);
  const std::vector<std::string> uris = accepted(*s, listen);
  for (const std::string &uri : listen.resources) {
    if (std::find(uris.begin(), uris.end(), uri) == uris.end()) {
      needs_.subscriptions.forget(*s, uri);
    }
  }
  const std::string filter = honoured(listen.kinds, listen.asks_for_resources ? &uris : nullptr);
  for (const ItemKind kind : listen.kinds) {
    s->listed |= static_cast<std::uint8_t>(1u << static_cast<unsigned>(kind));
  }
  if (!listen.kinds.empty()) needs_.views.mark_shown(*s->view);
  s->ready = true;
  record(listen, BH_OUTCOME_OK, {}, R"({"notifications":)" + filter + "}");
  needs_.answers.event(listen.reply,
                       listen_notification("subscriptions/acknowledged", s->request_id,
                                           R"("notifications":)" + filter));
}

std::vector<std::string> Listens::accepted(const Session &s, const Listen &listen) const {
  std::vector<std::string> out;
  for (const std::string &uri : listen.resources) {
    const auto at = s.subscriptions.find(uri);
    if (at == s.subscriptions.end()) continue;
    const Lane &lane = *at->second.lane;
    const auto watch = lane.watches.find(at->second.original);
    if (watch != lane.watches.end() && lane.reports(watch->second)) out.push_back(uri);
  }
  return out;
}

// ---- closing ---------------------------------------------------------------------------------

void Listens::cancel(const Session &s) {
  const auto at = open_.find(s.handle);
  if (at != open_.end()) needs_.answers.none(at->second.reply);
}

void Listens::finish(const Session &s) {
  const auto at = open_.find(s.handle);
  if (at == open_.end()) return;
  const std::string text = R"({"jsonrpc":"2.0","id":)" + s.request_id + R"(,"result":)" +
                           listen_result(s.request_id, server_info(needs_.profile)) + "}";
  const bh_str part = bh::str(text);
  record(at->second, BH_OUTCOME_OK, {}, "{}");
  const ReplyTo reply = at->second.reply;
  close(at);
  needs_.answers.send(reply, BH_OUT_ANSWER, &part, 1);
}

void Listens::ended(const Session &s) {
  const auto at = open_.find(s.handle);
  if (at == open_.end()) return;
  record(at->second, BH_OUTCOME_CANCELLED, "the client stopped listening", {});
  close(at);
}

void Listens::close(std::map<bh_session, Listen>::iterator at) {
  Listen &listen = at->second;
  needs_.reactor.timer_cancel(listen.timer);
  listen.load->subscribing -= static_cast<std::uint32_t>(listen.requests);
  open_.erase(at);
  proceed_later();  // other listen requests may use its share of the limit
}

void Listens::record(const Listen &listen, std::uint32_t outcome, std::string_view error,
                     std::string_view response) const {
  if (!needs_.recorder.active()) return;
  const bh_session handle = listen.reply.session;
  const Message message = listen.message.get();
  needs_.recorder.record(
      {needs_.sessions.find(handle), handle, message.bytes, message.scan, listen.start_ns},
      {outcome, needs_.reactor.now_ns(), response.size(), {}, error, response});
}

}  // namespace bulkhead
