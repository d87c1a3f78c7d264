// Asks: requests of upstreams to the client, and the client's answers.
//
// An ask reaches only the client whose call caused it. Over HTTP the stream it came on says which
// call that is; on one pipe it is the one client that has calls in flight there. If that is not one
// client, the ask is refused, never guessed. Which of that client's calls it was a pipe does not
// say: the ask stands as long as any of them, and all of them wait for it.
#include <algorithm>
#include <string>
#include <vector>

#include "bulkhead/cpp/basics.hpp"
#include "route/router.hpp"
#include "route/splice.hpp"
#include "route/wire_lane.hpp"

namespace bulkhead {
namespace {

// What a client must have declared to be asked this; 0: nobody is.
ClientCaps capability_for(mcp::Method method) {
  if (method == mcp::Method::roots_list) return cap::roots;
  if (method == mcp::Method::sampling_create_message) return cap::sampling;
  return method == mcp::Method::elicitation_create ? cap::elicitation : ClientCaps{0};
}

}  // namespace

// The server may still work on a call that another client has given up.
bool Router::may_be_anothers(Lane &lane, const Session &s) const {
  const std::uint64_t now = reactor_.now_ns();
  if (lane.forgotten.until_ns >= now && lane.forgotten.session != s.handle) return true;
  if (lane.retracted.empty()) return false;
  std::erase_if(lane.retracted, [now](const Lane::Retracted &r) { return r.until_ns < now; });
  return std::any_of(lane.retracted.begin(), lane.retracted.end(),
                     [&](const Lane::Retracted &r) { return r.session != s.handle; });
}

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
  if (only != nullptr && may_be_anothers(lane, *only)) {
    *exchange = nullptr;
    return nullptr;
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
  const ClientCaps needed = capability_for(scan.method);
  if (needed == 0 || (lane.caps() & needed) == 0) {
    return refuse_ask(lane, id, scan.method, Refused::undeclared);
  }
  ask_client(lane, hint, message, scan, !gate_.judges_inputs());
}

// judged: the policy has allowed it, or there is none that looks at it.
void Router::ask_client(WireLane &lane, std::uint64_t hint, std::string_view message,
                        const mcp::Scan &scan, bool judged) {
  const std::string_view id = scan.id.in(message);
  const ClientCaps needed = capability_for(scan.method);
  Exchange *exchange = nullptr;
  Session *client = attribute(lane, hint, &exchange);
  if (client == nullptr || client->input_ended || (client->caps & needed) == 0 ||
      client->open_asks >= limits().asks_per_session) {
    return refuse_ask(lane, id, scan.method, Refused::nobody);
  }
  if (!judged) {
    const bool sure = exchange != nullptr && exchange->method == mcp::Method::tools_call &&
                      (hint != 0 || other_calls(*exchange).empty());
    Event event;
    event.kind = Event::Kind::ask;
    event.session = client;
    event.upstream = &lane.upstream();
    event.method = scan.method;
    event.method_text = mcp::to_string(scan.method);
    if (sure) event.tool = exchange->name;
    event.body = scan.params.in(message);
    event.lane = lane.handle();
    event.hint = hint;
    event.id = id;
    event.message = message;
    if (!passes_event(std::move(event))) return;
  }
  put_ask(lane, hint, message, scan, *client, exchange);
}

void Router::put_ask(WireLane &lane, std::uint64_t hint, std::string_view message,
                     const mcp::Scan &scan, Session &client, Exchange *exchange) {
  Ask ask;
  ask.session = client.handle;
  ask.lane = &lane;
  ask.upstream_id = scan.id.in(message);
  ask.upstream_token = scan.progress_token.in(message);
  ask.method = scan.method;
  ask.exchange = exchange != nullptr ? exchange->id : 0;
  if (hint == 0 && exchange != nullptr) ask.others = other_calls(*exchange);
  ask.deadline_ns = reactor_.now_ns() + limits().ask_timeout_ms * 1'000'000u;
  const std::uint64_t handle = asks_.insert(ask);
  start_ask_timer();
  ++client.open_asks;
  suspend(ask.exchange);
  for (const std::uint64_t other : ask.others) suspend(other);
  const Digits number(handle);
  Splice splice(message);
  splice.replace(scan.id, number.view());
  splice.replace(scan.progress_token, number.view());
  const bh_str *parts = splice.parts();
  if (parts == nullptr) {
    ask_ended(handle);
    message_lost(lane, scan.method);
    return refuse_ask(lane, scan.id.in(message), scan.method, Refused::nobody);
  }
  const ReplyTo to{client.handle, exchange != nullptr ? exchange->reply.stream : 0, 0};
  answers_.send(to, BH_OUT_ASK, parts, splice.count());
}

// What a server gets that asks nobody in particular, for what was never offered to it, what the
// policy keeps from it, or with a token of progress that is none.
void Router::refuse_ask(WireLane &lane, std::string_view id, mcp::Method method, Refused why) {
  ++counters_.refused_asks;
  std::string tail;
  if (why == Refused::malformed) {
    tail = std::string(R"(,"error":{"code":-32602,"message":")") + bad_progress_token + "\"}}";
  } else if (why != Refused::undeclared && method == mcp::Method::elicitation_create) {
    tail = why == Refused::by_policy ? R"(,"result":{"action":"decline"}})"
                                     : R"(,"result":{"action":"cancel"}})";
  } else if (why == Refused::by_policy) {
    tail = R"(,"error":{"code":-1,"message":"The request was blocked by policy"}})";
  } else if (why == Refused::nobody && method == mcp::Method::sampling_create_message) {
    tail = R"(,"error":{"code":-1,"message":"The request cannot be attributed to one client"}})";
  } else {
    tail = R"(,"error":{"code":-32601,"message":"Method not found"}})";
  }
  const bh_str parts[] = {bh::str(R"({"jsonrpc":"2.0","id":)"), bh::str(id), bh::str(tail)};
  lane.send(BH_LANE_RESPONSE, parts, 3);
}

// The client's other calls that the server is working on: on one pipe any of them may have caused
// what it asks. Those that come later cannot.
std::vector<std::uint64_t> Router::other_calls(const Exchange &call) {
  std::vector<std::uint64_t> others;
  for (const Exchange *e = call.lane->exchanges.head; e != nullptr; e = e->lane_next) {
    if (e != &call && e->session == call.session && e->sent) others.push_back(e->id);
  }
  return others;
}

void Router::suspend(std::uint64_t exchange) {
  Exchange *e = exchanges_.get(exchange);
  if (e != nullptr && e->open_asks++ == 0) exchanges_.disarm(*e);
}

// The upstream works again: the call's time starts anew, since a person has used the old one up.
void Router::resume(std::uint64_t exchange) {
  Exchange *e = exchanges_.get(exchange);
  if (e != nullptr && e->open_asks != 0 && --e->open_asks == 0) arm(*e, e->timeout_ms);
}

// A call that had caused asks, or may have, is over: those that no other call may have caused end.
void Router::asking_call_ended(std::uint64_t exchange, bool tell_upstream) {
  asks_.for_each([&](std::uint64_t, Ask &ask) {
    std::erase(ask.others, exchange);
    if (ask.exchange != exchange || ask.others.empty()) return;
    ask.exchange = ask.others.back();
    ask.others.pop_back();
  });
  end_asks([exchange](const Ask &ask) { return ask.exchange == exchange; }, true, tell_upstream);
}

void Router::ask_ended(std::uint64_t handle) {
  Ask *found = asks_.get(handle);
  if (found == nullptr) return;
  const Ask ask = std::move(*found);
  asks_.erase(handle);
  if (Session *s = session(ask.session)) --s->open_asks;
  if (ask.lane == nullptr) return;  // its call's time is the question's
  resume(ask.exchange);
  for (const std::uint64_t other : ask.others) resume(other);
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
    const Ask *found = asks_.get(handle);
    if (found == nullptr) continue;
    // Off the table first: whoever is told may do anything, to this ask, too.
    const Ask ask = *found;
    ask_ended(handle);
    if (tell_upstream && ask.lane != nullptr) {
      refuse_ask(static_cast<WireLane &>(*ask.lane), ask.upstream_id, ask.method, Refused::nobody);
    }
    if (tell_client) tell_ask_ended(handle, ask);
    if (tell_upstream && ask.lane == nullptr) form_lost(ask.exchange);
  }
}

void Router::tell_ask_ended(std::uint64_t handle, const Ask &ask) {
  const std::string text =
      R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":)" +
      std::to_string(handle) + R"(,"reason":"the request that caused it has ended"}})";
  answers_.event(asked_of(ask), text);
}

// Where a client is told about an ask: on the stream of a call that may have caused it.
ReplyTo Router::asked_of(const Ask &ask) {
  const Exchange *e = exchanges_.get(ask.exchange);
  return {ask.session, e != nullptr ? e->reply.stream : 0, 0};
}

void Router::lane_lost(Lane &lane) {
  lane.retracted.clear();
  lane.forgotten = {};
  end_asks([&lane](const Ask &ask) { return ask.lane == &lane; }, true, false);
}

void Router::cancel_ask(WireLane &lane, std::string_view message, const mcp::Scan &scan) {
  const std::string_view id = scan.request_id.in(message);
  std::uint64_t found = 0;
  asks_.for_each([&](std::uint64_t handle, Ask &ask) {
    if (ask.lane == &lane && ask.upstream_id == id) found = handle;
  });
  const Ask *ask = asks_.get(found);
  if (ask == nullptr) return drop_asked_event(lane, id);
  const ReplyTo to = asked_of(*ask);
  ask_ended(found);
  const Digits number(found);
  const std::string text = compose_cancelled(number.view(), message, scan);
  answers_.event(to, text);
}

}  // namespace bulkhead
