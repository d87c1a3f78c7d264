// Tests the limits, and what happens when they are reached.
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "testing.hpp"

using namespace transport_http::testing;

namespace {

const std::string any_port = R"({"listen":"127.0.0.1:0"})";

std::size_t open_descriptors() {
  std::size_t n = 0;
  for ([[maybe_unused]] const auto &entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++n;
  }
  return n;
}

// Prevents this process from opening descriptors during the lifetime of the object.
class FewDescriptors {
 public:
  FewDescriptors() {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const int lowest_free = ::dup(0);
    ::close(lowest_free);
    const rlimit none{static_cast<rlim_t>(lowest_free), before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors &) = delete;
  FewDescriptors &operator=(const FewDescriptors &) = delete;

 private:
  rlimit before_{};
};

// Returns the size of the private writable memory of this process in KiB.
std::size_t data_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmData:")) return std::stoul(line.substr(7));
  }
  return 0;
}

}  // namespace

TEST_CASE("a request that arrives too slowly is answered with 408") {
  bh_limits limits = test_limits();
  limits.request_read_ms = 100;
  Rig rig(any_port, limits);
  std::string text = post(rig, "now");
  SECTION("during the head") {
    text.resize(40);
  }
  SECTION("during the body") {
    text.resize(text.size() - 1);
  }
  SECTION("during a chunked body") {
    text = "POST /mcp HTTP/1.1\r\n" + host_line(rig) +
           "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab";
  }
  Client slow(rig), other(rig);
  const std::string id = initialize(rig, other);
  slow.send(text.substr(0, text.size() - 10));
  for (std::size_t i = text.size() - 10; i < text.size(); ++i) {
    slow.send(text.substr(i, 1));  // makes steady progress, but too slowly
    rig.host.run_for(5);
  }
  CHECK(other.request(post(rig, "echo 1", id)).body == "echo 1");
  CHECK(slow.response().status == 408);
  CHECK(slow.wait_closed());
  CHECK(rig.delivered.size() == 2);
}

TEST_CASE("a connection without a request is closed") {
  bh_limits limits = test_limits();
  limits.request_read_ms = 100;
  Rig rig(any_port, limits);
  Client client(rig);
  REQUIRE(client.wait_closed());
  CHECK(client.bytes().empty());
}

TEST_CASE("an unused session ends, but a session in use does not") {
  bh_limits limits = test_limits();
  limits.session_idle_ms = 1'000;
  Rig rig(any_port, limits);
  Client client(rig), listening(rig), waiting(rig);
  const std::string idle = initialize(rig, client);
  const bh_session first = rig.last_session;
  const std::string busy = initialize(rig, client);
  listening.send(get(rig, busy));
  const std::string calling = initialize(rig, client);
  waiting.send(post(rig, "later", calling));
  REQUIRE(rig.host.run_until([&] { return rig.closed.size() == 1; }, 20'000));
  CHECK(rig.closed[0].session == first);
  CHECK(client.request(post(rig, "now", idle)).status == 404);
  CHECK(client.request(post(rig, "now", busy)).status == 200);
  rig.answer(rig.delivered[3], "x");
  CHECK(waiting.response().body == "x");
}

TEST_CASE("a peer that does not read is disconnected without delaying others") {
  bh_limits limits = test_limits();
  limits.write_stall_ms = 200;
  Rig rig(any_port, limits);
  Client slow(rig, 4096), other(rig);
  const std::string id = initialize(rig, other);
  slow.send(post(rig, "echo " + std::string(12u << 20, 'x'), id));
  REQUIRE(rig.host.run_until([&] { return rig.delivered.size() == 2; }, 20'000));
  REQUIRE(rig.host.run_until(
      [&] {
        const Response r = other.request(post(rig, "echo still here", id));
        return r.body == "echo still here" && rig.host.metric("http.slow_connections_dropped") == 1;
      },
      20'000));
  CHECK(slow.wait_closed());
  CHECK(slow.bytes().size() < 12u << 20);
}

TEST_CASE("unread output for a slow peer is limited") {
  bh_limits limits = test_limits();
  limits.write_queue_bytes = 64u << 10;
  Rig rig(any_port, limits);
  Client client(rig);
  const std::string id = initialize(rig, client);
  const bh_session session = rig.last_session;
  SECTION("on the general stream, the connection is closed and the session is kept") {
    Client slow(rig, 4096);
    slow.send(get(rig, id));
    REQUIRE(slow.wait_for("\r\n\r\n"));
    for (int i = 0; i < 100'000 && rig.host.metric("http.slow_connections_dropped") == 0; ++i) {
      CHECK(rig.send(BH_OUT_EVENT, session, 0, std::string(1000, 'x')) == BH_OK);
    }
    CHECK(rig.host.metric("http.slow_connections_dropped") == 1);
    rig.host.run_for(20);
    CHECK(client.request(post(rig, "echo 1", id)).body == "echo 1");
    CHECK(rig.closed.empty());
  }
  SECTION("with HTTP+SSE, the session ends") {
    Client slow(rig, 4096);
    slow.send(get(rig, {}, {}, "/sse"));
    REQUIRE(slow.wait_for("endpoint"));
    bh_status status = BH_OK;
    for (int i = 0; i < 100'000 && status == BH_OK; ++i) {
      status = rig.send(BH_OUT_EVENT, rig.last_session, 0, std::string(1000, 'x'));
    }
    CHECK(status == BH_E_LIMIT);
    CHECK(rig.closed.empty());  // not reported inside send()
    REQUIRE(rig.host.run_until([&] { return rig.closed.size() == 1; }, 20'000));
    CHECK(rig.closed[0].session == rig.last_session);
  }
}

TEST_CASE("a Content-Length without a body reserves no memory") {
  Rig rig(any_port);
  Client keeper(rig);
  const std::string id = initialize(rig, keeper);
  std::vector<std::unique_ptr<Client>> clients;
  const std::size_t before = data_kib();
  for (int i = 0; i < 60; ++i) {
    clients.push_back(std::make_unique<Client>(rig));
    clients.back()->send("POST /mcp HTTP/1.1\r\n" + host_line(rig) +
                         "Content-Type: application/json\r\nContent-Length: 16777216\r\n\r\n");
  }
  CHECK(keeper.request(post(rig, "echo 1", id)).body == "echo 1");
  REQUIRE(rig.host.run_until([&] { return rig.host.watches() == 62; }, 20'000));
  rig.host.run_for(20);
  for (const auto &client : clients) CHECK_FALSE(client->pump());
  CHECK(data_kib() - before < 512u << 10);  // the announced lengths are 960 MiB in total
}

TEST_CASE("closed connections leave no descriptors open") {
  Rig rig(any_port);
  Client keeper(rig);
  const std::string id = initialize(rig, keeper);
  const std::size_t before = open_descriptors();
  for (int round = 0; round < 10; ++round) {
    std::vector<std::unique_ptr<Client>> clients;
    for (int i = 0; i < 100; ++i) clients.push_back(std::make_unique<Client>(rig));
    for (std::size_t i = 0; i < clients.size(); ++i) {
      if (i % 4 == 0) clients[i]->send(post(rig, "now", id));
      if (i % 4 == 1) clients[i]->send("POST /mcp HT");
      if (i % 4 == 2) clients[i]->send(get(rig, id));
    }
    CHECK(clients[0]->response().status == 200);
  }
  REQUIRE(rig.host.run_until([&] { return open_descriptors() == before; }, 20'000));
  CHECK(rig.host.watches() == 2);  // the listener and the keeper
  CHECK(keeper.request(post(rig, "echo 1", id)).body == "echo 1");
}

TEST_CASE("at the connection limit, unused connections are closed") {
  bh_limits limits = test_limits();
  limits.sessions = 1;
  Rig rig(any_port, limits);
  Client user(rig);
  const std::string id = initialize(rig, user);
  constexpr std::size_t most = 66;
  std::vector<std::unique_ptr<Client>> clients;
  const auto fill = [&](const std::string &text) {
    clients.clear();
    while (clients.size() < most - 1) {
      clients.push_back(std::make_unique<Client>(rig));
      clients.back()->send(text);
    }
    REQUIRE(rig.host.run_until([&] { return rig.host.watches() == most + 1; }, 20'000));
    rig.host.run_for(20);
  };
  const auto first_closes = [&] {
    Client late(rig);
    CHECK(late.request(post(rig, "now", id)).status == 200);
    CHECK(clients[0]->wait_closed());
    CHECK_FALSE(clients[2]->pump());
    CHECK(rig.host.metric("http.connections_evicted") == 1);
    CHECK(rig.host.metric("http.connections_refused") == 0);
    CHECK(user.request(post(rig, "echo 1", id)).body == "echo 1");
  };
  SECTION("silent connections, the oldest first") {
    fill("");
    first_closes();
  }
  SECTION("connections with an incomplete head") {
    fill("POST /mcp HTTP/1.1\r\nHost:");
    first_closes();
  }
  SECTION("idle connections whose last request is older than that of other clients") {
    fill(post(rig, "now", id));
    CHECK(user.request(post(rig, "now", id)).status == 200);
    first_closes();
  }
  SECTION("connections that their clients have closed, without closing any others") {
    fill("");
    clients.clear();
    REQUIRE(rig.host.run_until([&] { return rig.host.watches() == 2; }, 20'000));
    Client late(rig);
    CHECK(late.request(post(rig, "now", id)).status == 200);
    CHECK(rig.host.metric("http.connections_evicted") == 0);
  }
  SECTION("connections with an incomplete body, if there are no others") {
    const std::string half = post(rig, "later", id);
    CHECK(user.request(post(rig, "now", id)).status == 200);
    fill(half.substr(0, half.size() - 1));
    // The idle connection is closed first.
    Client late(rig);
    CHECK(late.request(post(rig, "now", id)).status == 200);
    CHECK(user.wait_closed());
    CHECK_FALSE(clients[0]->pump());
  }
}

TEST_CASE("connections that wait for responses are closed if one session has many of them") {
  bh_limits limits = test_limits();
  limits.sessions = 2;
  Rig rig(any_port, limits);
  constexpr std::size_t most = 68;
  Client greedy(rig), modest(rig);
  const std::string id = initialize(rig, greedy), other = initialize(rig, modest);
  greedy.send(post(rig, "later", id));
  modest.send(post(rig, "later", other));
  std::vector<std::unique_ptr<Client>> clients;
  while (clients.size() < most - 2) {
    clients.push_back(std::make_unique<Client>(rig));
    clients.back()->send(post(rig, "later", id));
    rig.host.run_for(1);
  }
  REQUIRE(rig.host.run_until([&] { return rig.host.watches() == most + 1; }, 20'000));
  rig.host.run_for(20);
  // The new connection and the only connection of the other session are not closed.
  for (std::size_t i = 1; i <= 8; ++i) {
    Client late(rig);
    CHECK(late.request(post(rig, "now", other)).status == 200);
    CHECK(clients.back()->wait_closed());
    const std::string answer = clients.back()->bytes();
    CHECK(answer.starts_with("HTTP/1.1 503"));
    CHECK(answer.find("\r\nRetry-After: 5\r\n") != answer.npos);
    CHECK(answer.find("\r\nConnection: close\r\n") != answer.npos);
    CHECK(answer.find(R"({"jsonrpc":"2.0","error":{"code":-32000,"message":"Too many)") !=
          answer.npos);
    clients.pop_back();
    CHECK(rig.host.metric("http.connections_evicted") == i);
    // The session with many connections fills the freed capacity again.
    late.close();
    rig.host.run_for(20);
    clients.push_back(std::make_unique<Client>(rig));
    clients.back()->send(post(rig, "later", id));
    rig.host.run_for(20);
  }
  CHECK(rig.host.metric("http.connections_refused") == 0);
  CHECK_FALSE(modest.pump());
  CHECK_FALSE(greedy.pump());
}

TEST_CASE("a request that arrives slowly is kept, whatever the number of waiting calls") {
  bh_limits limits = test_limits();
  limits.sessions = 2;
  Rig rig(any_port, limits);
  constexpr std::size_t most = 68;
  Client user(rig), slow(rig);
  const std::string mine = initialize(rig, user), greedy = initialize(rig, user);
  const std::string text = post(rig, "echo arrived", mine);
  slow.send(text.substr(0, text.size() - 3));
  std::vector<std::unique_ptr<Client>> calls;
  for (std::size_t i = 0; i < 2 * most; ++i) {
    calls.push_back(std::make_unique<Client>(rig));
    calls.back()->send(post(rig, "later", greedy));
    rig.host.run_for(1);
  }
  REQUIRE(rig.host.run_until([&] { return rig.host.watches() == most + 1; }, 20'000));
  CHECK_FALSE(slow.pump());
  CHECK(slow.request(text.substr(text.size() - 3)).body == "echo arrived");
}

TEST_CASE("the oldest calls without a session are closed, but not those of the new client") {
  bh_limits limits = test_limits();
  limits.sessions = 2;
  Rig rig(any_port, limits);
  constexpr std::size_t most = 68;
  std::vector<std::unique_ptr<Client>> calls;
  const auto call = [&](const std::string &text) {
    calls.push_back(std::make_unique<Client>(rig));
    calls.back()->send(post(rig, text));
    REQUIRE(rig.host.run_until([&] { return rig.delivered.size() == calls.size(); }, 20'000));
  };
  while (calls.size() < most) call("later");
  call("later, mine");
  const std::size_t mine = calls.size() - 1;
  for (int i = 0; i < 20; ++i) call("later");
  rig.host.run_for(20);
  for (std::size_t i = 0; i <= 20; ++i) {
    INFO(i);
    CHECK(calls[i]->wait_closed());
    CHECK(calls[i]->bytes().starts_with("HTTP/1.1 503"));
    CHECK(rig.gone[i] == std::pair{bh_session{0}, rig.delivered[i].stream});
  }
  CHECK_FALSE(calls[21]->pump());
  CHECK(rig.delivered[mine].text == "later, mine");
  CHECK(rig.answer(rig.delivered[mine], "answer") == BH_OK);
  CHECK(calls[mine]->response().body == "answer");
}

TEST_CASE("without free descriptors, even connections of waiting calls are closed") {
  Rig rig(any_port);
  Client user(rig);
  const std::string id = initialize(rig, user);
  std::vector<std::unique_ptr<Client>> calls;
  for (int i = 0; i < 20; ++i) {
    calls.push_back(std::make_unique<Client>(rig));
    calls.back()->send(post(rig, "later", id));
  }
  user.send(post(rig, "later", id));
  REQUIRE(rig.host.run_until([&] { return rig.delivered.size() == 22; }, 20'000));
  Client late(rig);  // stays in the kernel's backlog
  late.send(post(rig, "echo 1", id));
  const FewDescriptors few;
  CHECK(late.response().body == "echo 1");
  CHECK_FALSE(rig.host.logged("accepting no connections"));
}

TEST_CASE("without free descriptors, silent connections are closed") {
  Rig rig(any_port);
  Client user(rig);
  const std::string id = initialize(rig, user);
  std::vector<std::unique_ptr<Client>> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(std::make_unique<Client>(rig));
  REQUIRE(rig.host.run_until([&] { return rig.host.watches() == 22; }, 20'000));
  Client waiting(rig);  // stays in the kernel's backlog
  waiting.send(post(rig, "echo 1", id));
  const FewDescriptors few;
  CHECK(waiting.response().body == "echo 1");
  CHECK(rig.host.metric("http.connections_evicted") == 1);
  CHECK_FALSE(rig.host.logged("accepting no connections"));
}

TEST_CASE("without free descriptors, the server waits without spinning") {
  Rig rig(any_port);
  Client client(rig), other(rig);
  const std::string id = initialize(rig, client);
  other.request(post(rig, "now", id));
  Client waiting(rig);  // stays in the kernel's backlog
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit none = before;
  none.rlim_cur = 4;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  const bool warned =
      rig.host.run_until([&] { return rig.host.logged("accepting no connections"); }, 20'000);
  const std::uint64_t turns = rig.host.turns();
  rig.host.run_for(200);
  const std::uint64_t spent = rig.host.turns() - turns;
  ::setrlimit(RLIMIT_NOFILE, &before);
  CHECK(warned);
  CHECK(spent < 20);
  // Closing one connection did not free enough descriptors.
  CHECK(rig.host.metric("http.connections_evicted") == 1);
  CHECK(client.wait_closed());
  CHECK_FALSE(other.pump());
  CHECK(other.request(post(rig, "echo 1", id)).body == "echo 1");
  CHECK(waiting.request(post(rig, "echo 2", id)).body == "echo 2");  // answered after the pause
}
