#include "eviction.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "config.hpp"

using namespace transport_http;

namespace {

constexpr std::uint64_t second = 1'000'000'000;

struct Table {
  Sessions sessions;
  bh_session last = 0;

  Session &add(const std::string &peer, std::uint64_t used_ns, bool ready = true) {
    ++last;
    Session &session = sessions.add(last, {0, last});
    session.peer = peer;
    session.ready = ready;
    session.last_used_ns = used_ns;
    return session;
  }
  void remove(Session &session) {
    sessions.forget(session);
    sessions.reap();
  }
  // Returns a pointer that is not null but must not be dereferenced.
  Connection *any() { return reinterpret_cast<Connection *>(this); }
};

}  // namespace

TEST_CASE("the sessions whose eviction does the least harm are evicted first") {
  Table table;
  Eviction eviction(8);
  Session &calling = table.add("a", 1 * second);
  calling.streams.push_back({.number = 1});
  Session &held = table.add("a", 2 * second);
  held.hold = true;
  Session &listening = table.add("a", 3 * second);
  listening.general = table.any();
  Session &used_late = table.add("a", 5 * second), &used_early = table.add("a", 4 * second);
  Session &late = table.add("a", 7 * second, false), &early = table.add("a", 6 * second, false);
  for (Session *expected : {&early, &late, &used_early, &used_late, &listening, &calling, &held}) {
    Session *picked = eviction.pick(table.sessions, 100 * second);
    REQUIRE(picked == expected);
    table.remove(*picked);
  }
  CHECK(eviction.pick(table.sessions, 100 * second) == nullptr);
}

TEST_CASE("the peer with the most sessions loses its least recently used session") {
  Table table;
  Eviction eviction(8);
  table.add("few", 1 * second);
  table.add("few", 2 * second);
  table.add("many", 12 * second);
  Session &second_oldest = table.add("many", 11 * second), &oldest = table.add("many", 10 * second);
  REQUIRE(eviction.pick(table.sessions, 20 * second) == &oldest);
  table.remove(oldest);
  // Both peers have the same number of sessions here.
  Session *next = eviction.pick(table.sessions, 20 * second);
  CHECK(next->last_used_ns == 1 * second);
  CHECK(next != &second_oldest);
  // Sessions in other categories do not count.
  for (int i = 0; i < 5; ++i) table.add("few", 30 * second).general = table.any();
  table.remove(*next);
  CHECK(eviction.pick(table.sessions, 40 * second) == &second_oldest);
}

TEST_CASE(
    "a session that has completed its handshake since the last scan is not evicted as a "
    "handshake") {
  Table table;
  Eviction eviction(8);
  std::vector<Session *> handshakes;
  for (std::uint64_t i = 0; i < 10; ++i) handshakes.push_back(&table.add("a", i * second, false));
  REQUIRE(eviction.pick(table.sessions, 20 * second) == handshakes[0]);
  table.remove(*handshakes[0]);
  handshakes[1]->ready = true;
  handshakes[2]->last_used_ns = 19 * second;
  table.remove(*handshakes[3]);
  Session *next = eviction.pick(table.sessions, 20 * second);
  REQUIRE(next == handshakes[4]);
  table.remove(*next);
  for (int i = 5; i < 10; ++i) {
    REQUIRE(eviction.pick(table.sessions, 20 * second) == handshakes[i]);
    table.remove(*handshakes[i]);
  }
  CHECK(eviction.pick(table.sessions, 20 * second) == handshakes[2]);
}

TEST_CASE("a few clients that connect at the same time do not evict each other") {
  Table table;
  Eviction eviction(128);  // recent handshakes are spared if there are at most two
  Session &used = table.add("a", 1 * second);
  Session &first = table.add("a", 10 * second, false);
  table.add("b", 10 * second, false);
  Session &listening = table.add("a", 1 * second);
  listening.general = table.any();
  SECTION("recent handshakes are spared for five seconds") {
    CHECK(eviction.pick(table.sessions, 11 * second) == &used);
    CHECK(eviction.pick(table.sessions, 16 * second)->ready == false);
  }
  SECTION("at most two handshakes are spared") {
    table.add("a", 10 * second + 1, false);
    CHECK(eviction.pick(table.sessions, 11 * second) == &first);
  }
  SECTION("a handshake is evicted if there is no other session") {
    table.remove(used);
    CHECK(eviction.pick(table.sessions, 11 * second) == &listening);
    table.remove(listening);
    CHECK(eviction.pick(table.sessions, 11 * second) != nullptr);
  }
}

TEST_CASE("a peer is an IPv4 address, an IPv6 network, this machine or a user") {
  const auto v4 = [](const char *text, std::uint16_t port) {
    sockaddr_storage out{};
    auto &in = reinterpret_cast<sockaddr_in &>(out);
    in.sin_family = AF_INET;
    in.sin_port = htons(port);
    REQUIRE(::inet_pton(AF_INET, text, &in.sin_addr) == 1);
    return peer_key(-1, out);
  };
  const auto v6 = [](const char *text) {
    sockaddr_storage out{};
    auto &in = reinterpret_cast<sockaddr_in6 &>(out);
    in.sin6_family = AF_INET6;
    REQUIRE(::inet_pton(AF_INET6, text, &in.sin6_addr) == 1);
    return peer_key(-1, out);
  };
  CHECK(v4("10.0.0.1", 1) == v4("10.0.0.1", 2));
  CHECK(v4("10.0.0.1", 1) != v4("10.0.0.2", 1));
  CHECK(v4("127.0.0.1", 1) == v4("127.9.9.9", 1));
  CHECK(v4("127.0.0.1", 1) == v6("::1"));
  CHECK(v6("::ffff:10.0.0.1") == v4("10.0.0.1", 1));
  CHECK(v6("2001:db8:0:1::1") == v6("2001:db8:0:1:ffff::2"));
  CHECK(v6("2001:db8:0:1::1") != v6("2001:db8:0:2::1"));

  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  sockaddr_storage unix_address{};
  unix_address.ss_family = AF_UNIX;
  const std::string mine = peer_key(ends[0], unix_address);
  const uid_t uid = ::getuid();
  CHECK(mine == "u" + std::string(reinterpret_cast<const char *>(&uid), sizeof uid));
  CHECK(peer_text(ends[0], unix_address) ==
        "uid:" + std::to_string(uid) + " pid:" + std::to_string(::getpid()));
  ::close(ends[0]);
  ::close(ends[1]);
}
