#include "route/sessions.hpp"

#include <catch2/catch.hpp>
#include <set>

#include "route/client_fakes.hpp"

using namespace bulkhead;

TEST_CASE("a session has the peer data that its transport reported") {
  Sessions sessions(5);
  FakeClient client;
  Session &s = open_session(sessions, client, BH_PEER_HANDSHAKE_OPTIONAL);
  CHECK(s.transport == "http");
  CHECK(s.address == "127.0.0.1:7");
  CHECK(s.principal == "somebody");
  CHECK(s.process_name == "agent");
  CHECK(s.max_message_bytes == 4096);
  CHECK(s.handshake_optional);
  CHECK_FALSE(s.answers_only);
  CHECK(s.start_ns == 42);
  CHECK(s.end == &client);
  CHECK(sessions.find(s.handle) == &s);
  CHECK(sessions.size() == 1);
}

TEST_CASE("a handle of a closed session or of another process is not found") {
  FakeClient client;
  Sessions ours(5), theirs(9);
  const bh_session here = open_session(ours, client).handle;
  const bh_session there = open_session(theirs, client).handle;
  CHECK(ours.find(there) == nullptr);
  CHECK(ours.find(0) == nullptr);
  ours.erase(here);
  CHECK(ours.find(here) == nullptr);
  const bh_session next = open_session(ours, client).handle;
  CHECK(next != here);
  CHECK(ours.find(here) == nullptr);
}

TEST_CASE(
    "the address of a session does not change while others open, and sessions can be erased in a "
    "loop") {
  Sessions sessions(1);
  FakeClient client;
  Session &first = open_session(sessions, client);
  for (int i = 0; i < 99; ++i) open_session(sessions, client);
  CHECK(sessions.find(first.handle) == &first);
  std::set<bh_session> seen;
  sessions.for_each([&](const Session &s) { seen.insert(s.handle); });
  CHECK(seen.size() == 100);
  for (const bh_session handle : sessions.handles()) sessions.erase(handle);
  CHECK(sessions.size() == 0);
}
