// Tests the path of message headers from the router through a link and a connector to an HTTP
// server.
#include <catch2/catch.hpp>

#include <string>
#include <utility>
#include <vector>

#include "bulkhead/cpp/messages.hpp"
#include "fixture.hpp"
#include "link/client_stub.hpp"
#include "link/server_stub.hpp"

using namespace bulkhead;
using namespace bulkhead::link;
using connector_http::testing::Peer;
using connector_http::testing::Request;
using connector_http::testing::Server;

namespace {

struct Heard final : ClientStubEvents {
  std::vector<std::string> messages, failures;
  void lane_message(bh_lane, std::uint64_t, std::string_view message) override {
    messages.emplace_back(message);
  }
  void lane_exchange_failed(bh_lane, std::uint64_t, const LaneFailure &failure) override {
    failures.push_back(failure.error.text);
  }
  void lane_down(bh_lane, const LaneFailure &failure) override {
    failures.push_back(failure.error.text);
  }
  void lane_closed(bh_lane) override {}
  void call_complete(bh_call, std::uint32_t, std::string_view) override {}
  void call_failed(bh_call, const Error &) override {}
  void call_progress(bh_call, double, double, std::string_view) override {}
  void call_event(bh_call, std::uint32_t, std::string_view) override {}
  void tools_changed(const std::string &, std::uint32_t) override {}
  void tools_began(const std::string &) override {}
  void resource_updated(const std::string &, std::string_view) override {}
};

// Acts as the compartment of a connector: the plugin, its host and the server stub. The test acts
// as the router.
struct Compartment {
  bh::testing::FakeHost host;
  bh_limits limits = bh::testing::limits();
  bh_host_connector table{};
  const bh_plugin *plugin = nullptr;
  std::vector<ServedPlugin> plugins{1};
  std::map<std::string, std::string> definitions;
  std::unique_ptr<ServerStub> server;

  Compartment(Reactor &reactor, const std::string &url)
      : definitions{{"s", R"({"type":"http","url":")" + url + "\"}"}} {
    host.user = this;
    table.size = sizeof table;
    table.limits = &limits;
    table.message = [](void *c, bh_lane lane, std::uint64_t exchange, bh_str text) {
      of(c).message(lane, exchange, bh::view(text));
    };
    table.exchange_failed = [](void *c, bh_lane lane, std::uint64_t exchange,
                               const bh_lane_failure *f) {
      of(c).exchange_failed(lane, exchange, LaneFailure(f));
    };
    table.lane_down = [](void *c, bh_lane lane, const bh_lane_failure *f) {
      of(c).lane_down(lane, LaneFailure(f));
    };
    table.lane_closed = [](void *c, bh_lane lane) { of(c).lane_closed(lane); };
    host.add_ext(BH_EXT_HOST_CONNECTOR, &table);
    const bh_entry *entry = bh_static_entry_ConnectorHttp();
    REQUIRE(entry->create("connector-http", host.host(), &plugin, nullptr) == BH_OK);
    REQUIRE(plugin->configure(plugin->self, bh::str("{}"), nullptr) == BH_OK);
    REQUIRE(plugin->start(plugin->self, nullptr) == BH_OK);
    plugins[0].id = "connector-http";
    plugins[0].connector =
        static_cast<const bh_connector *>(plugin->get_ext(plugin->self, BH_EXT_CONNECTOR));
    plugins[0].self = plugin->self;
    server = std::make_unique<ServerStub>(reactor, limits, plugins, definitions);
  }
  ~Compartment() {
    plugin->stop(plugin->self);
    plugin->destroy(plugin->self);
  }
  static ServerStub &of(void *ctx) {
    return *static_cast<Compartment *>(bh::testing::FakeHost::self(ctx).user)->server;
  }
};

}  // namespace

TEST_CASE("valid headers reach an HTTP server through a link") {
  Server server([](const Request &r, Peer &peer) {
    if (!connector_http::testing::handshake_step(r, peer)) {
      peer.answer(200, connector_http::testing::result(2));
    }
  });
  const auto reactor = std::move(*Reactor::create());
  Compartment compartment(*reactor, server.url());
  Heard heard;
  ClientStub client(*reactor, "aggregator", compartment.limits, heard);
  auto trunk = socket_pair();
  REQUIRE(trunk.has_value());
  compartment.server->attach(std::move(trunk->second));
  client.attach(std::move(trunk->first));
  const auto until = [&](const std::function<bool()> &done) {
    for (int i = 0; i < 2000 && !done(); ++i) {
      reactor->poll(1);
      compartment.host.run_for(1);
    }
    return done();
  };

  void *self = client.plugin("connector-http"), *lane = nullptr;
  bh_lane_info info{};
  info.size = sizeof info;
  info.server = bh::str("s");
  info.connect_timeout_ms = 3000;
  REQUIRE(ClientStub::connector().lane_open(self, 1, &info, &lane, nullptr) == BH_OK);
  bh_error error = bh::make_error();
  const auto send = [&](std::uint64_t exchange, const std::string &text, std::uint32_t flags,
                        const std::vector<bh_header> &headers) {
    const bh_str part = bh::str(text);
    bh_lane_message message{};
    message.size = sizeof message;
    message.kind = BH_LANE_REQUEST;
    message.flags = flags;
    message.exchange = exchange;
    message.part_count = 1;
    message.parts = &part;
    message.headers = headers.data();
    message.header_count = static_cast<std::uint32_t>(headers.size());
    return ClientStub::connector().lane_send(self, lane, &message, &error);
  };
  const auto header = [](std::string_view name, std::string_view value) {
    return bh_header{bh::str(name), bh::str(value)};
  };
  const std::string call = connector_http::testing::call(2);
  CHECK(send(1, R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{}})", BH_LANE_INITIALIZE,
             {header("MCP-Protocol-Version", "2026-07-28")}) == BH_OK);
  REQUIRE(until([&] { return heard.messages.size() == 1; }));
  CHECK(send(2, call, 0, {header("Mcp-Method", "tools/call"), header("Mcp-Name", "x")}) == BH_OK);
  REQUIRE(until([&] { return heard.messages.size() == 2; }));
  const auto requests = server.requests();
  CHECK(requests.front().header("mcp-protocol-version") == "2026-07-28");
  CHECK_FALSE(requests.front().headers.contains("mcp-name"));
  CHECK(requests.back().body == call);
  CHECK(requests.back().header("mcp-method") == "tools/call");
  CHECK(requests.back().header("mcp-name") == "x");

  CHECK(send(3, call, 0, {header("Mcp-Name", "x\r\nHost: elsewhere")}) == BH_E_INVALID);
  CHECK(bh::text(error) == R"(the value of header "Mcp-Name" contains a control character)");
  // The link does not know which names the connector reserves.
  CHECK(send(4, call, 0, {header("Authorization", "Bearer s3cret")}) == BH_OK);
  REQUIRE(until([&] { return heard.failures.size() == 1; }));
  CHECK(heard.failures[0].find(R"(header "Authorization" cannot be set)") != std::string::npos);
  CHECK(heard.failures[0].find("s3cret") == std::string::npos);
  CHECK(server.requests().size() == requests.size());
}
