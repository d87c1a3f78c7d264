// Tests opening a connection to a server, without the lane. wire_lane_opening_test.cpp tests which
// requests are sent to which server.
#include "route/server_opening.hpp"

#include "route/lane_part_fakes.hpp"
#include "route/stateless_server_edge.hpp"

using namespace bulkhead;

namespace {

using Texts = std::vector<std::string>;

constexpr auto old_result = R"("result":{"protocolVersion":"2025-06-18","capabilities":{}})";
constexpr auto new_result =
    R"("result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}})";
constexpr auto no_method = R"("error":{"code":-32601,"message":"no"})";
constexpr auto header_mismatch = R"("error":{"code":-32020,"message":"no"})";

ServerDef server_with(ProtocolPin protocol) {
  ServerDef def = server_named("s");
  def.protocol = protocol;
  return def;
}

struct Parts : LaneParts, ServerOpening::Owner {
  ServerOpening opening{lane, *this, conversation, wire, *this};
  Texts revisions{};  // of the opened connections
  std::vector<Error> failed{};
  std::uint32_t waits = 0;
  int reopened = 0;

  explicit Parts(ServerDef def) : LaneParts(std::move(def)) {
    lane.connection = 1;
    opening.start();
  }
  void opened_with(const ServerEdge &edge, ServerEdge::Opened opened) override {
    CHECK(conversation.edge() == &edge);
    CHECK(conversation.revision() == opened.revision);
    revisions.push_back(opened.revision);
  }
  void attempt_failed(const Error &error, std::uint32_t retry_after_ms) override {
    failed.push_back(error);
    waits = retry_after_ms;
  }
  void reopen() override { ++reopened; }

  // Responds to the newest request.
  void respond(const std::string &outcome) {
    const std::uint64_t exchange = wire.sent.back().exchange;
    end_own_exchange();
    const Scanned m(R"({"jsonrpc":"2.0","id":1,)" + outcome + "}");
    opening.answered(exchange, &m.scan, m.text, nullptr, 0);
  }
  void fail(const Error &error, std::uint32_t retry_after_ms) {
    const std::uint64_t exchange = wire.sent.back().exchange;
    end_own_exchange();
    opening.answered(exchange, nullptr, {}, &error, retry_after_ms);
  }
  Texts methods() const {
    Texts out;
    for (const auto &request : wire.sent) out.push_back(request.method);
    return out;
  }
};

}  // namespace

TEST_CASE("the responses to the opening requests determine the revision") {
  struct Case {
    std::string about;
    ProtocolPin protocol;
    Texts responses, methods, revisions;
    Texts errors;
  };
  const std::vector<Case> cases = {
      {"pinned to sessions",
       ProtocolPin::v2025_11_25,
       {old_result},
       {"initialize"},
       {"2025-06-18"},
       {}},
      {"the server has no sessions",
       ProtocolPin::automatic,
       {new_result},
       {"server/discover"},
       {"2026-07-28"},
       {}},
      {"the server has sessions",
       ProtocolPin::automatic,
       {no_method, old_result},
       {"server/discover", "initialize"},
       {"2025-06-18"},
       {}},
      {"neither",
       ProtocolPin::automatic,
       {no_method, no_method},
       {"server/discover", "initialize"},
       {},
       {"rejected initialize"}},
      {"the request itself is rejected",
       ProtocolPin::automatic,
       {header_mismatch},
       {"server/discover"},
       {},
       {"rejected server/discover"}},
  };
  for (const Case &c : cases) {
    INFO(c.about);
    Parts p(server_with(c.protocol));
    for (const std::string &response : c.responses) p.respond(response);
    CHECK(p.methods() == c.methods);
    CHECK(p.revisions == c.revisions);
    REQUIRE(p.failed.size() == c.errors.size());
    for (std::size_t i = 0; i < c.errors.size(); ++i) {
      CHECK(p.failed[i].code == BH_E_PROTOCOL);
      CHECK(p.failed[i].text.starts_with(c.errors[i]));
    }
  }
}

TEST_CASE("a failed connection is reported with the delay that the server requested") {
  Parts p(server_with(ProtocolPin::v2025_11_25));
  p.fail({BH_E_UNAVAILABLE, "busy"}, 250);
  REQUIRE(p.failed.size() == 1);
  CHECK(p.failed[0].text == "busy");
  CHECK(p.waits == 250);
}

TEST_CASE("responses after the connection has ended have no effect") {
  Parts p(server_with(ProtocolPin::automatic));
  p.lane.connection = 0;
  p.respond(old_result);
  CHECK(p.revisions.empty());
  CHECK(p.failed.empty());
}

TEST_CASE("the time for a response to server/discover is measured only while it is open") {
  Parts p(server_with(ProtocolPin::automatic));
  CHECK(p.loop->held(&p.lane).timers == 1);
  SECTION("the connection has ended") {
    p.opening.stop();
  }
  SECTION("the server has responded") {
    p.respond(new_result);
  }
  CHECK(p.loop->held(&p.lane).timers == 0);
}

TEST_CASE("a server that exits at server/discover is opened with initialize next") {
  const Error gone{BH_E_UNAVAILABLE, "exited"};
  Parts p(server_with(ProtocolPin::automatic));
  REQUIRE(p.opening.ended_on_probe(gone));
  p.opening.stop();
  p.opening.start();
  CHECK(p.methods() == Texts{"server/discover", "initialize"});
  CHECK_FALSE(p.opening.ended_on_probe(gone));
}

TEST_CASE("recheck() asks a server over HTTP once, and a rejection means that it was replaced") {
  struct Case {
    std::string about;
    std::string outcome;  // empty if there is no response
    bh_status failure;
    int reopened;
  };
  const std::vector<Case> cases = {
      {"supported", new_result, BH_OK, 0},
      {"not supported", no_method, BH_OK, 1},
      {"another error", R"("error":{"code":-32603,"message":"no"})", BH_OK, 0},
      {"HTTP error", "", BH_E_PROTOCOL, 1},
      {"unavailable", "", BH_E_UNAVAILABLE, 0},
  };
  for (const Case &c : cases) {
    INFO(c.about);
    ServerDef def = server_with(ProtocolPin::automatic);
    def.url = "http://localhost/";
    def.type = "http";
    Parts p(def);
    p.respond(new_result);
    p.lane.set_state(LaneState::ready);
    p.opening.recheck();
    p.opening.recheck();
    CHECK(p.methods() == Texts{"server/discover", "server/discover"});
    p.end_own_exchange();
    if (c.failure == BH_OK) {
      const Scanned m(R"({"jsonrpc":"2.0","id":1,)" + c.outcome + "}");
      p.opening.rechecked(&m.scan, m.text, nullptr);
    } else {
      const Error error{c.failure, "no"};
      p.opening.rechecked(nullptr, {}, &error);
    }
    CHECK(p.reopened == c.reopened);
  }
}
