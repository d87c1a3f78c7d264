// What upstreams send: answers, asks (requests to the client) and notifications.
//
// An ask reaches only the client whose call caused it. Over HTTP the stream it came on says which
// call that is; on one pipe it is the one client that has calls in flight there. If that is not one
// client, the ask is refused, never guessed.
#include <algorithm>
#include <string>

#include "bulkhead/cpp/basics.hpp"
#include "route/router.hpp"
#include "route/splice.hpp"
#include "route/wire_lane.hpp"

namespace bulkhead {

void Router::upstream_message(bh_lane handle, std::uint64_t hint, std::string_view message) {
  WireLane **slot = wires_.get(handle);
  if (slot == nullptr || *slot == nullptr) return;  // of a connection that is being closed
  WireLane &lane = **slot;
  mcp::Scan scan;
  mcp::ScanError error;
  if (message.size() > limits().message_bytes || !mcp::scan(message, &scan, &error)) {
    ++counters_.bad_upstream_messages;
    const std::uint64_t id = hint != 0 ? hint : parse_number(error.seen_id.in(message));
    const std::string text = "server \"" + lane.upstream().name() + "\" sent an invalid message: " +
                             (error.what[0] != '\0' ? error.what : "too large");
    log(BH_LOG_WARN, text);
    Exchange *e = exchanges_.get(id);
    if (e != nullptr && e->lane == &lane) {
      lane.abandon(id);
      exchange_failed(handle, id, {BH_E_PROTOCOL, text});
    }
    return;
  }
  switch (scan.kind) {
    case mcp::Kind::result:
    case mcp::Kind::error:
      return upstream_answer(lane, hint, message, scan);
    case mcp::Kind::request:
      return upstream_request(lane, hint, message, scan);
    case mcp::Kind::notification:
      return upstream_notification(lane, hint, message, scan);
    case mcp::Kind::batch: {
      struct Each {
        Router *router;
        bh_lane lane;
        std::uint64_t hint;
      } each{this, handle, hint};
      mcp::for_each_element(message, &each, [](void *arg, std::string_view element) {
        auto &e = *static_cast<Each *>(arg);
        // An array inside an array is no message; scanned as a batch it would nest without end.
        if (!element.starts_with('[')) e.router->upstream_message(e.lane, e.hint, element);
        return true;
      });
      return;
    }
  }
}

// ---- answers ---------------------------------------------------------------------------------

void Router::upstream_answer(WireLane &lane, std::uint64_t hint, std::string_view message,
                             const mcp::Scan &scan) {
  Exchange *e = exchanges_.get(parse_number(scan.id.in(message)));
  // An error about a request whose id the server could not read belongs to the stream's exchange.
  if (e == nullptr && hint != 0 && scan.kind == mcp::Kind::error) e = exchanges_.get(hint);
  if (e == nullptr || e->lane != &lane) {
    ++counters_.stray_answers;
    // The server has finished what a client had given up.
    const std::uint64_t id = parse_number(scan.id.in(message));
    std::erase_if(lane.retracted, [id](const Lane::Retracted &r) { return r.exchange == id; });
    return;
  }
  if (e->purpose != Purpose::call) return lane.own_answer(*e, &scan, message, nullptr);
  answer_call(*e, message, scan);
}

void Router::answer_call(Exchange &e, std::string_view message, const mcp::Scan &scan) {
  // While the stream is still there: a question that the server no longer waits for is taken back.
  if (e.open_asks != 0) {
    const std::uint64_t asked = e.id;
    end_asks([asked](const Ask &ask) { return ask.exchange == asked; }, true, false);
  }
  const bool judged = scan.kind == mcp::Kind::result && gate_.observes();
  if (judged && !passes_result(e, message, scan)) return;
  pass_answer(e, message, scan);
}

void Router::pass_answer(Exchange &e, std::string_view message, const mcp::Scan &scan) {
  // Sent before the exchange is freed: the client's id lives in it.
  const ReplyTo reply = e.reply;
  const std::uint64_t id = e.id;
  const bool ok = scan.kind == mcp::Kind::result;
  if (scan.id.empty()) {
    return fail_exchange(e, code::internal_error,
                         "server \"" + e.server + "\" answered with an error without an id: " +
                             std::string(scan.error.in(message).substr(0, 300)),
                         BH_OUTCOME_ERROR);
  }
  Splice splice(message);
  splice.replace(scan.id, e.client_id);
  const bh_str *parts = splice.parts();
  answer(reply, parts, splice.count());
  Exchange *still = exchanges_.get(id);  // the client may have gone while it was being answered
  if (still != nullptr) {
    finish(*still, ok ? BH_OUTCOME_OK : BH_OUTCOME_ERROR, message.size(), {},
           ok ? std::string_view{} : scan.error.in(message));
    check_idle();
  }
}

void Router::exchange_failed(bh_lane handle, std::uint64_t exchange, const Error &error) {
  WireLane **slot = wires_.get(handle);
  Exchange *e = exchanges_.get(exchange);
  if (slot == nullptr || *slot == nullptr || e == nullptr || e->lane != *slot) return;
  if (e->purpose != Purpose::call) return (*slot)->own_answer(*e, nullptr, {}, &error);
  const std::string name = "server \"" + (*slot)->upstream().name() + "\"";
  const std::string text =
      error.text.find(name) != std::string::npos ? error.text : name + ": " + error.text;
  fail_exchange(*e, code::internal_error, text, BH_OUTCOME_ERROR);
}

void Router::lane_down(bh_lane handle, const Error &error, std::uint32_t retry_after_ms) {
  WireLane **slot = wires_.get(handle);
  if (slot != nullptr && *slot != nullptr) (*slot)->down(error, retry_after_ms);
}

// ---- asks ------------------------------------------------------------------------------------

Session *Router::attribute(WireLane &lane, std::uint64_t hint, Exchange **exchange) {
  *exchange = nullptr;
  if (hint != 0) {
    Exchange *e = exchanges_.get(hint);
    if (e != nullptr && e->lane == &lane && e->session != nullptr) {
      *exchange = e;
      return e->session;
    }
    // The wire says whose it is, and that call has ended: it is nobody else's.
    return lane.session() != 0 ? session(lane.session()) : nullptr;
  }
  // One client's calls only: which of them does not matter for who is asked; the newest lends its
  // stream.
  Session *only = nullptr;
  for (Exchange *e = lane.exchanges.head; e != nullptr; e = e->lane_next) {
    if (e->session == nullptr || !e->sent) continue;
    if (only != nullptr && only != e->session) {
      *exchange = nullptr;
      return nullptr;
    }
    only = e->session;
    if (*exchange == nullptr) *exchange = e;
  }
  if (only != nullptr && !lane.retracted.empty()) {
    const std::uint64_t now = reactor_.now_ns();
    std::erase_if(lane.retracted, [now](const Lane::Retracted &r) { return r.until_ns < now; });
    for (const Lane::Retracted &r : lane.retracted) {
      if (r.session == only->handle) continue;
      *exchange = nullptr;
      return nullptr;
    }
  }
  if (only != nullptr) return only;
  // A lane of one client: whatever comes is for it.
  return lane.session() != 0 ? session(lane.session()) : nullptr;
}

void Router::upstream_request(WireLane &lane, std::uint64_t hint, std::string_view message,
                              const mcp::Scan &scan) {
  const std::string_view id = scan.id.in(message);
  if (scan.method == mcp::Method::ping) {
    const bh_str parts[] = {bh::str(R"({"jsonrpc":"2.0","id":)"), bh::str(id),
                            bh::str(R"(,"result":{}})")};
    return lane.send(BH_LANE_RESPONSE, parts, 3);
  }
  ClientCaps needed = 0;
  if (scan.method == mcp::Method::roots_list) needed = cap::roots;
  if (scan.method == mcp::Method::sampling_create_message) needed = cap::sampling;
  if (scan.method == mcp::Method::elicitation_create) needed = cap::elicitation;
  if (needed == 0 || (lane.caps() & needed) == 0) return refuse_ask(lane, id, scan.method, true);
  Exchange *exchange = nullptr;
  Session *client = attribute(lane, hint, &exchange);
  if (client == nullptr || client->input_ended || (client->caps & needed) == 0 ||
      client->open_asks >= limits().asks_per_session) {
    return refuse_ask(lane, id, scan.method, false);
  }
  Ask ask;
  ask.session = client->handle;
  ask.lane = &lane;
  ask.upstream_id = id;
  ask.upstream_token = scan.progress_token.in(message);
  ask.method = scan.method;
  ask.exchange = exchange != nullptr ? exchange->id : 0;
  ask.deadline_ns = reactor_.now_ns() + limits().ask_timeout_ms * 1'000'000u;
  const std::uint64_t handle = asks_.insert(std::move(ask));
  start_ask_timer();
  ++client->open_asks;
  if (exchange != nullptr && exchange->open_asks++ == 0) exchanges_.disarm(*exchange);
  const Digits number(handle);
  Splice splice(message);
  splice.replace(scan.id, number.view());
  splice.replace(scan.progress_token, number.view());
  const bh_str *parts = splice.parts();
  const ReplyTo to{client->handle, exchange != nullptr ? exchange->reply.stream : 0, 0};
  send(to, BH_OUT_ASK, parts, splice.count(), 0);
}

// What a server gets that asks nobody in particular, or for what was never offered to it.
void Router::refuse_ask(WireLane &lane, std::string_view id, mcp::Method method, bool undeclared) {
  ++counters_.refused_asks;
  std::string tail;
  if (!undeclared && method == mcp::Method::elicitation_create) {
    tail = R"(,"result":{"action":"cancel"}})";
  } else if (!undeclared && method == mcp::Method::sampling_create_message) {
    tail = R"(,"error":{"code":-1,"message":"The request cannot be attributed to one client"}})";
  } else {
    tail = R"(,"error":{"code":-32601,"message":"Method not found"}})";
  }
  const bh_str parts[] = {bh::str(R"({"jsonrpc":"2.0","id":)"), bh::str(id), bh::str(tail)};
  lane.send(BH_LANE_RESPONSE, parts, 3);
}

void Router::ask_ended(std::uint64_t handle) {
  Ask *found = asks_.get(handle);
  if (found == nullptr) return;
  const Ask ask = std::move(*found);
  asks_.erase(handle);
  if (Session *s = session(ask.session)) --s->open_asks;
  Exchange *e = exchanges_.get(ask.exchange);
  // The upstream works again: its time starts anew, since a person has used the old one up.
  if (e != nullptr && e->open_asks != 0 && --e->open_asks == 0) arm(*e, e->timeout_ms);
}

// Asks wait for people; looking once a second is exact enough.
void Router::start_ask_timer() {
  if (ask_timer_ != 0) return;
  ask_timer_ = reactor_.timer_start(
      this, 1000,
      [](void *arg) {
        auto &self = *static_cast<Router *>(arg);
        self.ask_timer_ = 0;
        self.expire_asks();
        if (self.asks_.size() != 0) self.start_ask_timer();
      },
      this);
}

void Router::expire_asks() {
  const std::uint64_t now = reactor_.now_ns();
  end_asks([now](const Ask &ask) { return ask.deadline_ns <= now; }, true, true);
}

// Ends asks whose call or client has gone. The upstream gets an answer where its client has gone,
// the client a cancellation where the upstream has.
void Router::end_asks(const std::function<bool(const Ask &)> &which, bool tell_client,
                      bool tell_upstream) {
  if (asks_.size() == 0) return;
  std::vector<std::uint64_t> handles;
  asks_.for_each([&](std::uint64_t handle, Ask &ask) {
    if (which(ask)) handles.push_back(handle);
  });
  for (const std::uint64_t handle : handles) {
    const Ask *ask = asks_.get(handle);
    if (ask == nullptr) continue;
    if (tell_client) {
      const Exchange *e = exchanges_.get(ask->exchange);
      const std::string text =
          R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":)" +
          std::to_string(handle) + R"(,"reason":"the request that caused it has ended"}})";
      const bh_str part = bh::str(text);
      send({ask->session, e != nullptr ? e->reply.stream : 0, 0}, BH_OUT_EVENT, &part, 1, 0);
    }
    if (tell_upstream) {
      refuse_ask(static_cast<WireLane &>(*ask->lane), ask->upstream_id, ask->method, false);
    }
    ask_ended(handle);
  }
}

void Router::lane_lost(Lane &lane) {
  lane.retracted.clear();
  end_asks([&lane](const Ask &ask) { return ask.lane == &lane; }, true, false);
}

void Router::cancel_ask(WireLane &lane, std::string_view message, const mcp::Scan &scan) {
  const std::string_view id = scan.request_id.in(message);
  std::uint64_t found = 0;
  asks_.for_each([&](std::uint64_t handle, Ask &ask) {
    if (ask.lane == &lane && ask.upstream_id == id) found = handle;
  });
  const Ask *ask = asks_.get(found);
  if (ask == nullptr) return;
  const Exchange *e = exchanges_.get(ask->exchange);
  const Digits number(found);
  Splice splice(message);
  splice.replace(scan.request_id, number.view());
  const bh_str *parts = splice.parts();
  send({ask->session, e != nullptr ? e->reply.stream : 0, 0}, BH_OUT_EVENT, parts, splice.count(),
       0);
  ask_ended(found);
}

// ---- notifications ---------------------------------------------------------------------------

void Router::upstream_notification(WireLane &lane, std::uint64_t hint, std::string_view message,
                                   const mcp::Scan &scan) {
  switch (scan.method) {
    case mcp::Method::notifications_progress:
      return forward_progress(lane, message, scan);
    case mcp::Method::notifications_message:
      return forward_log(lane, hint, message, scan);
    case mcp::Method::notifications_resources_updated:
      return forward_updated(lane, message, scan);
    case mcp::Method::notifications_cancelled:
      return cancel_ask(lane, message, scan);
    case mcp::Method::notifications_tools_list_changed:
      return lane.list_changed(ItemKind::tool);
    case mcp::Method::notifications_prompts_list_changed:
      return lane.list_changed(ItemKind::prompt);
    case mcp::Method::notifications_resources_list_changed:
      lane.list_changed(ItemKind::resource);
      return lane.list_changed(ItemKind::resource_template);
    default: {
      // Others (elicitation/complete, unknown ones) go to the client that the lane works for.
      Exchange *e = nullptr;
      Session *client = attribute(lane, hint, &e);
      if (client == nullptr) {
        ++counters_.dropped_events;
        return;
      }
      const bh_str part = bh::str(message);
      send({client->handle, e != nullptr ? e->reply.stream : 0, 0}, BH_OUT_EVENT, &part, 1, 0);
    }
  }
}

void Router::forward_progress(WireLane &lane, std::string_view message, const mcp::Scan &scan) {
  Exchange *e = exchanges_.get(parse_number(scan.token.in(message)));
  if (e == nullptr || e->lane != &lane || e->client_token.empty()) {
    ++counters_.dropped_events;
    return;
  }
  Splice splice(message);
  splice.replace(scan.token, e->client_token);
  const bh_str *parts = splice.parts();
  send(e->reply, BH_OUT_EVENT, parts, splice.count(), 0);
}

void Router::forward_log(WireLane &lane, std::uint64_t hint, std::string_view message,
                         const mcp::Scan &scan) {
  std::string scratch;
  const int level =
      scan.level.empty() ? -1 : parse_log_level(mcp::unquote(scan.level.in(message), &scratch));
  const bh_str part = bh::str(message);
  Exchange *e = nullptr;
  if (Session *client = attribute(lane, hint, &e)) {
    if (client->log_level >= 0 && level >= 0 && level < client->log_level) return;
    send({client->handle, e != nullptr ? e->reply.stream : 0, 0}, BH_OUT_EVENT, &part, 1, 0);
    return;
  }
  // Of nobody's call: to those who asked for logs.
  bool sent = false;
  for (const View *view : lane.views) {
    for (const Session *client : view->clients) {
      if (client->log_level < 0 || (level >= 0 && level < client->log_level)) continue;
      send({client->handle, 0, 0}, BH_OUT_EVENT, &part, 1, 0);
      sent = true;
    }
  }
  if (!sent) ++counters_.dropped_events;
}

}  // namespace bulkhead
