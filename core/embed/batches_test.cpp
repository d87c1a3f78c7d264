// Tests JSON-RPC batches from clients and servers: nesting is rejected, and sizes are limited.
#include <catch2/catch.hpp>
#include <string>

#include "embed/fake_world.hpp"

using namespace bulkhead;

namespace {

std::string repeated(const std::string &element, int n) {
  std::string text = "[";
  for (int i = 0; i < n; ++i) text += (i == 0 ? "" : ",") + element;
  return text + "]";
}

std::size_t count(const std::string &text, const std::string &what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

std::string call_x(int id) {
  return R"({"jsonrpc":"2.0","id":)" + std::to_string(id) +
         R"(,"method":"tools/call","params":{"name":"a__x"}})";
}

struct LoggedWorld : World {
  std::vector<std::string> warnings;

  void start() {
    HostOptions options;
    options.static_plugins = {{"fake-connector", bh_static_entry_FakeConnector}};
    options.log = [this](LogLevel level, std::string_view, std::string_view text) {
      if (level == LogLevel::warn) warnings.emplace_back(text);
    };
    auto created = Host::create(profile, std::move(options));
    REQUIRE(created.has_value());
    host = std::move(*created);
    REQUIRE(host->start().has_value());
    REQUIRE(host->run_until([&] { return host->settled(); }, 20'000));
    warnings.clear();
  }
};

}  // namespace

TEST_CASE("a batch inside a client's batch is an error, and its messages are not processed") {
  World w;
  w.start();
  Client c(*w.host, "{}", "2025-03-26");
  const std::size_t before = w.up.lane("a").sent.size();
  c.end->send(R"([{"jsonrpc":"2.0","id":1,"method":"ping"},[)" + call_x(2) + R"(],[[]],)" +
              R"({"jsonrpc":"2.0","id":3,"method":"ping"}])");
  REQUIRE(c.got.size() == 1);
  CHECK(w.up.lane("a").sent.size() == before);
  CHECK(count(c.got[0], R"("error":{"code":-32600)") == 2);
  CHECK(c.has(R"({"jsonrpc":"2.0","id":1,"result":{}})"));
  CHECK(c.has(R"({"jsonrpc":"2.0","id":3,"result":{}})"));
}

TEST_CASE("a client's batch is limited to 256 messages") {
  World w;
  w.start();
  Client c(*w.host, "{}", "2025-03-26");
  c.end->send(repeated(R"({"jsonrpc":"2.0","id":1,"method":"ping"})", 300));
  REQUIRE(c.got.size() == 1);
  CHECK(count(c.got[0], R"("result":{})") == 256);
  CHECK(count(c.got[0], "at most 256") == 1);
}

TEST_CASE("the total size of the responses that are held for a client's batches is limited") {
  World w;
  w.profile.limits.message_bytes = 4096;
  w.profile.limits.write_queue_bytes = 8192;
  w.start();
  Client c(*w.host, "{}", "2025-03-26");
  const std::string large(3000, 'x');
  std::vector<std::string> calls;
  const auto send_batch = [&](int first) {
    const std::size_t from = w.up.lane("a").sent.size();
    c.end->send("[" + call_x(first) + "," + call_x(first + 1) + "," + call_x(first + 2) + "]");
    for (std::size_t i = from; i < w.up.lane("a").sent.size(); ++i) {
      calls.push_back(FakeUpstreams::id_of(w.up.lane("a").sent[i]));
    }
  };
  const auto answer = [&](std::size_t i, const std::string &text) {
    w.up.send("a", R"({"jsonrpc":"2.0","id":)" + calls[i] + R"(,"result":{"t":")" + text + "\"}}");
  };
  send_batch(10);
  send_batch(20);
  REQUIRE(calls.size() == 6);
  answer(0, large);
  answer(3, large);
  answer(1, large);  // together with the other batch's results, this exceeds the limit
  answer(4, "y");    // this does not exceed the limit
  CHECK(c.got.empty());
  answer(2, "z");
  REQUIRE(c.got.size() == 1);
  CHECK(count(c.got[0], large) == 1);
  CHECK(c.got[0].find(R"("id":11,"error":{"code":-32000)") != std::string::npos);
  CHECK(c.got[0].find("limits.write_queue_bytes") != std::string::npos);
  CHECK(c.got[0].find(R"("id":12,"result":{"t":"z"})") != std::string::npos);
  answer(5, large);  // the response to the first batch has been sent
  REQUIRE(c.got.size() == 2);
  CHECK(count(c.got[1], large) == 2);
}

TEST_CASE(
    "messages of a server's batch are processed one by one, and an invalid message is logged "
    "once") {
  LoggedWorld w;
  w.start();
  Client c(*w.host);
  c.call("1", "a__x");
  const std::string id = FakeUpstreams::id_of(w.up.last("a"));
  w.up.send("a", R"([1,[{"jsonrpc":"2.0","id":)" + id + R"(,"result":{"nested":1}}],2,)" +
                     R"({"jsonrpc":"2.0","id":)" + id + R"(,"result":{}},3])");
  REQUIRE(c.got.size() == 1);
  CHECK(c.has(R"({"jsonrpc":"2.0","id":1,"result":{}})"));
  REQUIRE(w.warnings.size() == 1);
  CHECK(w.warnings[0].find("and 3 more in its batch") != std::string::npos);
}

TEST_CASE("a server's batch is limited in size") {
  LoggedWorld w;
  w.start();
  Client c(*w.host);
  c.call("1", "a__x");
  const std::string id = FakeUpstreams::id_of(w.up.last("a"));
  std::string batch = repeated("1", 300);
  batch.back() = ',';
  batch += R"({"jsonrpc":"2.0","id":)" + id + R"(,"result":{}}])";
  SECTION("on a shared connection, the messages above the limit are dropped") {
    w.up.send("a", batch);
    CHECK(c.got.empty());
    w.up.send("a", R"({"jsonrpc":"2.0","id":)" + id + R"(,"result":{}})");
    CHECK(c.has(R"({"jsonrpc":"2.0","id":1,"result":{}})"));
  }
  SECTION("on the stream of a call, the call fails") {
    std::string notes = repeated(R"({"jsonrpc":"2.0","method":"notifications/x"})", 300);
    w.up.send("a", notes, std::stoull(id));
    CHECK(c.has(R"("id":1,"error")"));
    CHECK(c.has("a batch of more than 256 messages"));
  }
  CHECK(w.warnings.size() == 1);
}
