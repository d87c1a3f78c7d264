#include "route/client_load.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "bulkhead/cpp/basics.hpp"

using namespace bulkhead;

namespace {

std::shared_ptr<ClientLoad> load_of(ClientLoads *loads, const std::string &principal,
                                    const std::string &address, std::uint64_t now_ns = 0) {
  bh_peer peer{};
  peer.size = sizeof peer;
  peer.transport = bh::str("http");
  peer.principal = bh::str(principal);
  peer.address = bh::str(address);
  return loads->of(peer, now_ns, 1'000);
}

}  // namespace

TEST_CASE("client loads: connections from one address, or of one user, are one peer") {
  CHECK(peer_group("127.0.0.1:4711") == "loopback");
  CHECK(peer_group("127.9.9.9:1") == "loopback");
  CHECK(peer_group("[::1]:4711") == "loopback");
  CHECK(peer_group("[::ffff:127.0.0.1]:1") == "loopback");
  CHECK(peer_group("192.0.2.7:4711") == "192.0.2.7");
  CHECK(peer_group("192.0.2.7:4712") == peer_group("192.0.2.7:1"));
  CHECK(peer_group("[2001:db8:0:1::5]:80") == peer_group("[2001:db8:0:1:ffff::]:81"));
  CHECK(peer_group("[2001:db8:0:1::5]:80") != peer_group("[2001:db8:0:2::5]:80"));
  CHECK(peer_group("[::ffff:192.0.2.7]:1") != peer_group("[::ffff:192.0.2.8]:1"));
  CHECK(peer_group("uid:1000 pid:7") == "uid:1000");
  CHECK(peer_group("uid:1000 pid:8") == "uid:1000");
  for (const char *other : {"", "unix", "cid:3", "uid:1000", "[x]:1", "a:b"}) {
    CHECK(peer_group(other) == other);
  }
}

TEST_CASE("client loads: each principal and peer has its own counts, which outlive requests") {
  ClientLoads loads;
  const auto first = load_of(&loads, "token", "127.0.0.1:1");
  first->asks = 5;
  CHECK(load_of(&loads, "token", "127.0.0.1:2") == first);
  CHECK(load_of(&loads, "local", "127.0.0.1:2") != first);
  CHECK(load_of(&loads, "token", "192.0.2.7:2") != first);
  // If there are many peers, counts that are not in use are removed.
  for (int i = 0; i < 10'000; ++i) load_of(&loads, "token", "192.0.2.7:1@" + std::to_string(i));
  CHECK(loads.size() <= ClientLoads::max_idle);
  CHECK(load_of(&loads, "token", "127.0.0.1:3") == first);
  CHECK(first->asks == 5);
  std::vector<std::shared_ptr<ClientLoad>> used;
  for (int i = 0; i < 2'000; ++i) {
    used.push_back(load_of(&loads, "p" + std::to_string(i), "127.0.0.1:1"));
  }
  CHECK(load_of(&loads, "p0", "127.0.0.1:1") == used[0]);
}

TEST_CASE("client loads: a peer without requests for some time gets new counts") {
  ClientLoads loads;
  auto load = load_of(&loads, "token", "127.0.0.1:1", 1);
  CHECK_FALSE(load->has_session);
  load->calls = 7;
  load = load_of(&loads, "token", "127.0.0.1:2", 1'001);
  CHECK(load->calls == 7);
  CHECK(load_of(&loads, "token", "127.0.0.1:3", 9'000) == load);  // a request is open
  load = nullptr;
  CHECK(load_of(&loads, "token", "127.0.0.1:4", 10'000)->calls == 7);
  CHECK(load_of(&loads, "token", "127.0.0.1:4", 11'001)->calls == 0);
}
