// Tests which client a message is attributed to: on a stream, on a pipe, and after calls were
// cancelled.
#include "route/attribution.hpp"

#include <catch2/catch.hpp>
#include <deque>

#include "route/fakes.hpp"

using namespace bulkhead;

namespace {

struct World {
  FakeLaneHost host;
  Sessions sessions{1};
  FakeClient client;
  Attribution attribution{sessions, host.table, *host.loop};
  Upstream upstream{host, server_named("s")};
  FakeLane lane{host, upstream, 0, 0};
  Session &first = open_session(sessions, client), &second = open_session(sessions, client);
  CallTable calls;

  Exchange &call_of(Session &session, Lane &at, bool sent = true) {
    Call &made = *calls.open();
    made.session = &session;
    Exchange &e = *host.table.open();
    e.call = &made;
    made.exchange = &e;
    at.attach(e);
    if (sent) static_cast<FakeLane &>(at).send_now(e);
    return e;
  }
  Session *client_of(std::uint64_t hint = 0) {
    call = nullptr;
    return attribution.client_of(lane, hint, &call);
  }
  Call *call = nullptr;
};

}  // namespace

TEST_CASE("a stream identifies the call even if other clients have calls on the lane") {
  World w;
  const Exchange &of_first = w.call_of(w.first, w.lane), &of_second = w.call_of(w.second, w.lane);
  CHECK(w.client_of(of_first.id) == &w.first);
  CHECK(w.call == of_first.call);
  CHECK(w.client_of(of_second.id) == &w.second);
  // The call of this stream has already ended, so the message belongs to no client.
  CHECK(w.client_of(12345) == nullptr);
  FakeLane elsewhere(w.host, w.upstream, 0, 0);
  CHECK(w.client_of(w.call_of(w.first, elsewhere).id) == nullptr);
}

TEST_CASE("on a pipe, a message belongs to the only client whose calls have been sent") {
  World w;
  CHECK(w.client_of() == nullptr);
  w.call_of(w.second, w.lane, false);  // queued, not sent
  const Exchange &older = w.call_of(w.first, w.lane), &newer = w.call_of(w.first, w.lane);
  CHECK(w.client_of() == &w.first);
  CHECK(w.call == newer.call);
  CHECK(Attribution::other_calls(*newer.call) == std::vector<std::uint64_t>{older.call->id});
  w.call_of(w.second, w.lane);
  CHECK(w.client_of() == nullptr);
  CHECK(w.call == nullptr);
}

TEST_CASE("a lane for one client always works for that client") {
  World w;
  FakeLane own(w.host, w.upstream, 0, w.first.handle);
  Call *call = nullptr;
  CHECK(w.attribution.client_of(own, 0, &call) == &w.first);
  CHECK(w.attribution.client_of(own, 12345, &call) == &w.first);
  w.sessions.erase(w.first.handle);
  CHECK(w.attribution.client_of(own, 0, &call) == nullptr);
}

TEST_CASE("requests caused by a cancelled call do not reach other clients") {
  World w;
  w.call_of(w.first, w.lane);
  w.attribution.given_up(w.lane, 77, w.first);
  CHECK(w.client_of() == &w.first);  // the cancelled call belongs to the same client
  w.attribution.given_up(w.lane, 78, w.second);
  CHECK(w.client_of() == nullptr);
  SECTION("until the server has finished it") {
    Attribution::finished(w.lane, 78);
    CHECK(w.client_of() == &w.first);
  }
  SECTION("until its time has expired") {
    for (Lane::Retracted &r : w.lane.retracted) r.until_ns = 1;
    CHECK(w.client_of() == &w.first);
    CHECK(w.lane.retracted.empty());
  }
  SECTION("until the connection is lost") {
    Attribution::connection_lost(w.lane);
    CHECK(w.client_of() == &w.first);
  }
}

TEST_CASE(
    "if too many calls are cancelled, only their client is remembered, or that there were several "
    "clients") {
  World w;
  w.call_of(w.first, w.lane);
  for (std::uint64_t i = 0; i <= Attribution::max_given_up; ++i) {
    w.attribution.given_up(w.lane, 100 + i, w.first);
  }
  CHECK(w.lane.retracted.size() == Attribution::max_given_up);
  CHECK(w.lane.forgotten.session == w.first.handle);
  CHECK(w.client_of() == &w.first);
  for (std::uint64_t i = 0; i <= Attribution::max_given_up; ++i) {
    w.attribution.given_up(w.lane, 200 + i, w.second);
  }
  CHECK(w.lane.forgotten.session == 0);
  w.lane.retracted.clear();
  CHECK(w.client_of() == nullptr);
}

TEST_CASE(
    "requests without a session are of one client if their scope and claimed name are equal") {
  World w;
  const auto request_of = [&](std::uint64_t scope, const char *name) -> Session & {
    Session &s = open_session(w.sessions, w.client);
    s.sessionless = Session::Sessionless::waits;
    s.scope = scope;
    s.claimed_name = std::make_shared<const std::string>(name);
    return s;
  };
  constexpr std::uint64_t alice = 1ull << 63 | 5, bob = 1ull << 63 | 6;
  const Exchange &older = w.call_of(request_of(alice, "editor"), w.lane);
  Session &newest = request_of(alice, "editor");
  const Exchange &newer = w.call_of(newest, w.lane);
  CHECK(w.client_of() == &newest);
  CHECK(w.call == newer.call);
  CHECK(Attribution::other_calls(*newer.call) == std::vector<std::uint64_t>{older.call->id});
  // The client of the newer call has already been asked, so the message is assumed to be about the
  // older call. If both clients have been asked, the newest call is used.
  newer.call->session->repeats_requests = older.call->session->repeats_requests = true;
  newer.call->session->parked = true;
  CHECK(w.client_of() == older.call->session);
  CHECK(w.call == older.call);
  older.call->session->parked = true;
  CHECK(w.client_of() == &newest);
  // A cancelled call of the same client does not matter.
  w.attribution.given_up(w.lane, 77, request_of(alice, "editor"));
  CHECK(w.client_of() == &newest);
  SECTION("a cancelled call of another principal") {
    w.attribution.given_up(w.lane, 78, request_of(bob, "editor"));
    CHECK(w.client_of() == nullptr);
  }
  SECTION("a call of another principal") {
    w.call_of(request_of(bob, "editor"), w.lane);
    CHECK(w.client_of() == nullptr);
  }
  SECTION("a call of another program") {
    w.call_of(request_of(alice, "terminal"), w.lane);
    CHECK(w.client_of() == nullptr);
  }
  SECTION("a call of a client with a session") {
    w.call_of(w.first, w.lane);
    CHECK(w.client_of() == nullptr);
  }
}
