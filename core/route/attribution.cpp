#include "route/attribution.hpp"

#include <algorithm>

namespace bulkhead {
namespace {

// Returns a key that identifies the session's client. Sessionless requests have the same key if
// they arrived on the same connection or, without a connection, have the same transport and
// principal.
std::uint64_t client_key(const Session &s) {
  return s.is_sessionless() && s.scope != 0 ? s.scope : s.handle;
}

// Returns true if the client of this session can be asked now. If the session is parked, its client
// has already been asked through a result, and the server is waiting for the answer. The server's
// next message is therefore assumed to be about another call.
bool may_be_asked(const Session &s) {
  return !s.is_sessionless() || (s.repeats_requests && !s.parked);
}

bool is_about(const Call &call, const TaskNote &task) {
  return call.session != nullptr && is_task_method(call.method) &&
         call.request.task_id == task.client_id;
}

}  // namespace

bool Attribution::same_client(const Session &a, const Session &b) {
  if (&a == &b) return true;
  return a.is_sessionless() && b.is_sessionless() && client_key(a) == client_key(b) &&
         text_of(a.claimed_name) == text_of(b.claimed_name);
}

Session *Attribution::client_of(Lane &lane, std::uint64_t hint, Call **call) const {
  *call = nullptr;
  // On a lane that belongs to one client, every message is for that client.
  Session *const owner = lane.session() != 0 ? sessions_.find(lane.session()) : nullptr;
  if (hint != 0) {
    Exchange *e = exchanges_.get(hint);
    // The stream identifies the call. If that call has ended, the message does not belong to any
    // other client.
    if (e == nullptr || e->lane != &lane || e->call == nullptr) return owner;
    *call = e->call;
    return e->call->session;
  }
  // If all calls belong to one client, it does not matter which of them caused the message. The
  // stream of the newest call is used; calls whose client cannot be asked now are used only if
  // there are no others.
  Session *only = nullptr;
  Call *newest = nullptr;
  for (Exchange *e = lane.exchanges.head; e != nullptr; e = e->lane_next) {
    if (e->call == nullptr || !e->sent) continue;
    Session &client = *e->call->session;
    if (only != nullptr && !same_client(*only, client)) return nullptr;
    if (only != nullptr && (may_be_asked(*only) || !may_be_asked(client))) continue;
    only = &client;
    newest = e->call;
  }
  if (only == nullptr) return owner;
  if (may_be_anothers(lane, *only)) return nullptr;
  *call = newest;
  return only;
}

// A client without a session is known only by its calls about the task. A request of the server
// belongs only to a call that waits for the task's result: other calls about the task are answered
// immediately, and the request must not end with them.
Session *Attribution::client_of_task(Lane &lane, std::uint64_t hint, const TaskNote &task,
                                     Call **call) const {
  *call = nullptr;
  Exchange *const stream = hint == 0 ? nullptr : exchanges_.get(hint);
  if (stream != nullptr && (stream->lane != &lane || stream->call == nullptr)) return nullptr;
  Session *client = nullptr;
  for (Exchange *e = lane.exchanges.head; e != nullptr; e = e->lane_next) {
    if (e->call == nullptr || !e->sent || !is_about(*e->call, task)) continue;
    const bool waits = e->call->method == mcp::Method::tasks_result;
    if (stream == e) {
      *call = waits ? e->call : nullptr;
      return e->call->session;
    }
    if (waits) *call = e->call;
    if (waits || *call == nullptr) client = e->call->session;
  }
  if (client == nullptr && task.session != 0) client = sessions_.find(task.session);
  if (stream == nullptr || client == nullptr) return client;
  if (client == stream->call->session) return client;
  *call = nullptr;
  return nullptr;
}

// Returns true if the server may still be working on a cancelled or timed-out call from another
// client.
bool Attribution::may_be_anothers(Lane &lane, const Session &s) const {
  const std::uint64_t now = reactor_.now_ns();
  const std::uint64_t client = client_key(s);
  if (lane.forgotten.until_ns >= now && lane.forgotten.session != client) return true;
  if (lane.retracted.empty()) return false;
  std::erase_if(lane.retracted, [now](const Lane::Retracted &r) { return r.until_ns < now; });
  return std::any_of(lane.retracted.begin(), lane.retracted.end(),
                     [&](const Lane::Retracted &r) { return r.session != client; });
}

std::vector<std::uint64_t> Attribution::other_calls(const Call &call, bool about_task) {
  std::vector<std::uint64_t> others;
  for (const Exchange *e = call.exchange->lane->exchanges.head; e != nullptr; e = e->lane_next) {
    if (e->call == nullptr || e->call == &call || !e->sent) continue;
    const bool waits = e->call->method == mcp::Method::tasks_result;
    if (about_task && (!waits || e->call->request.task_id != call.request.task_id)) continue;
    if (same_client(*e->call->session, *call.session)) others.push_back(e->call->id);
  }
  return others;
}

void Attribution::given_up(Lane &lane, std::uint64_t exchange, const Session &session) const {
  const std::uint64_t client = client_key(session);
  if (lane.session() == client) return;  // there are no other clients
  if (lane.retracted.size() >= max_given_up) forget_oldest(lane);
  lane.retracted.push_back({exchange, client, reactor_.now_ns() + memory_ns});
}

// Removes the oldest cancelled call from the list. Its client is remembered in `forgotten`.
void Attribution::forget_oldest(Lane &lane) const {
  const Lane::Retracted oldest = lane.retracted.front();
  lane.retracted.erase(lane.retracted.begin());
  Lane::Retracted &forgotten = lane.forgotten;
  const bool others =
      forgotten.until_ns >= reactor_.now_ns() && forgotten.session != oldest.session;
  forgotten = {0, others ? 0 : oldest.session, oldest.until_ns};
}

void Attribution::finished(Lane &lane, std::uint64_t exchange) {
  std::erase_if(lane.retracted,
                [exchange](const Lane::Retracted &r) { return r.exchange == exchange; });
}

void Attribution::connection_lost(Lane &lane) {
  lane.retracted.clear();
  lane.forgotten = {};
  lane.task_notes.clear();
}

}  // namespace bulkhead
