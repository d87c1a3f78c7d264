// Tests how a connection to a server is opened: the order of the opening requests, and the stored
// protocol generation.
#include "route/opening.hpp"

#include <catch2/catch.hpp>

#include "route/protocol_choice.hpp"
#include "route/stateless_server_edge.hpp"

using namespace bulkhead;

namespace {

using Step = Opening::Step;
using Refusal = Opening::Refusal;

const ServerEdge &stateless = stateless_server_edge();
const ServerEdge &session = session_server_edge();
constexpr std::uint64_t now = 1'790'000'000;

struct Started : Opening {
  explicit Started(const ServerEdge &first = stateless, const ServerEdge *second = &session) {
    begin(first, second);
    sending(1);
  }
};
Error failed(std::string text) {
  return {BH_E_PROTOCOL, std::move(text)};
}

ServerDef with_list(const std::string &text) {
  ServerDef def;
  def.kept = {"definition", {{0, text}}};
  return def;
}

}  // namespace

TEST_CASE("a server that refuses server/discover gets initialize, but only once") {
  Started opening;
  CHECK(&opening.edge_of(1) == &stateless);
  REQUIRE(opening.refused(1, failed("no discover"), Refusal::no_generation) == Step::send);
  CHECK(&opening.edge() == &session);
  opening.sending(2);
  CHECK(&opening.edge_of(2) == &session);
  CHECK(opening.other_than(2) == 0);  // the first request has already failed
  CHECK(opening.certain());
  CHECK(opening.refused(2, failed("no initialize"), Refusal::no_generation) == Step::fail);
  CHECK(opening.error().text == "no initialize");
}

TEST_CASE("a silent server also gets initialize, and the first response decides") {
  Started opening;
  CHECK(opening.watches_silence());
  REQUIRE(opening.silent() == Step::send);
  opening.sending(2);
  CHECK_FALSE(opening.watches_silence());
  CHECK(opening.silent() == Step::wait);
  CHECK(opening.other_than(1) == 2);
  CHECK(opening.other_than(2) == 1);
  SECTION("if one request is refused, the other one stays open") {
    CHECK(opening.refused(2, failed("no initialize"), Refusal::no_generation) == Step::wait);
    CHECK(opening.other_than(2) == 1);
    CHECK(opening.refused(1, failed("too late"), Refusal::connection) == Step::fail);
    CHECK(opening.error().text == "no initialize");
  }
}

TEST_CASE("if a server with a session-based verdict refuses initialize, server/discover is tried") {
  Started opening(session, &stateless);
  CHECK_FALSE(opening.watches_silence());  // only server/discover has the short limit
  CHECK_FALSE(opening.probing());
  REQUIRE(opening.refused(1, failed("no initialize"), Refusal::no_generation) == Step::send);
  CHECK(&opening.edge() == &stateless);
  opening.sending(2);
  CHECK(opening.refused(2, failed("no discover"), Refusal::no_generation) == Step::fail);
  CHECK(opening.error().text == "no initialize");
}

TEST_CASE(
    "a connection error fails the opening, and after an unclear error nothing is remembered") {
  Started denied;
  CHECK(denied.refused(1, failed("HTTP 401"), Refusal::connection) == Step::fail);
  CHECK(denied.error().text == "HTTP 401");
  Started broken;
  CHECK(broken.refused(1, failed("HTTP 500"), Refusal::unclear) == Step::send);
  CHECK_FALSE(broken.certain());
  Started pinned(stateless, nullptr);
  CHECK_FALSE(pinned.watches_silence());
  CHECK_FALSE(pinned.probing());
  CHECK(pinned.refused(1, failed("no discover"), Refusal::no_generation) == Step::fail);
}

TEST_CASE(
    "without a verdict, the stateless generation is tried first; otherwise, the generation of the "
    "verdict") {
  ProtocolChoice choice{ServerDef{}};
  CHECK(&choice.first(now) == &stateless);
  CHECK(choice.second(now) == &session);
  choice.decided(session, "2025-06-18", now);
  CHECK(&choice.first(now) == &session);
  CHECK(choice.second(now) == &stateless);
  CHECK(&choice.first(now + ProtocolChoice::lifetime_s - 1) == &session);
  CHECK(&choice.first(now + ProtocolChoice::lifetime_s) == &stateless);
  CHECK(&choice.first(now - 1) == &stateless);  // the clock was set back
  // Confirming a verdict does not extend its lifetime.
  choice.decided(session, "2025-06-18", now + 1000);
  CHECK(&choice.first(now + ProtocolChoice::lifetime_s) == &stateless);
  choice.decided(stateless, "2026-07-28", now + 1000);
  CHECK(&choice.first(now + ProtocolChoice::lifetime_s) == &stateless);
  CHECK(choice.stamped("{}").find("2026-07-28") != std::string::npos);
}

TEST_CASE("if a server exits on server/discover, all later connections start with initialize") {
  ProtocolChoice choice{ServerDef{}};
  choice.ended_on_probe();
  CHECK(&choice.first(now) == &session);
  choice.ended_on_probe();
  CHECK(&choice.first(now) == &session);
  CHECK(choice.second(now) == &stateless);
  choice.decided(session, "2025-11-25", now);
  CHECK(&choice.first(now) == &session);
  // Another connection that exits later does not remove the verdict.
  choice.ended_on_probe();
  CHECK(mcp::member(choice.stamped("{}"), "protocol") == R"("2025-11-25")");
  choice.decided(session, "2025-11-25", now);
  CHECK(&choice.first(now + ProtocolChoice::lifetime_s) == &stateless);
  choice.decided(stateless, "2026-07-28", now);
  choice.ended_on_probe();
  CHECK(&choice.first(now) == &session);
}

TEST_CASE("a verdict is stored with a list and read back, and the list is unchanged") {
  ProtocolChoice choice{ServerDef{}};
  const std::string list = R"({"capabilities":{},"instructions":"x","tools":[]})";
  CHECK(choice.stamped(list) == list);  // there is no verdict yet
  choice.decided(session, "2025-06-18", now);
  const std::string stored = choice.stamped(list);
  CHECK(mcp::valid_json(stored));
  CHECK(stored.ends_with(list.substr(1)));
  CHECK(mcp::member(stored, "protocol") == R"("2025-06-18")");
  CHECK(&ProtocolChoice(with_list(stored)).first(now + 5) == &session);
  CHECK(mcp::valid_json(choice.stamped("")));
  CHECK(&ProtocolChoice(with_list(choice.stamped(""))).first(now) == &session);
  // If there are several lists, the newest verdict counts.
  ServerDef two = with_list(stored);
  ProtocolChoice later{ServerDef{}};
  later.decided(stateless, "2026-07-28", now + 10);
  two.kept.lists.insert(two.kept.lists.begin(), {4, later.stamped(list)});
  CHECK(&ProtocolChoice(two).first(now + 20) == &stateless);
  two.kept.lists.push_back({8, stored});
  CHECK(&ProtocolChoice(two).first(now + 20) == &stateless);
}

TEST_CASE("a stored text that is not a verdict is ignored") {
  const std::string good = R"({"protocol":"2025-06-18","decided":1790000000,"capabilities":{}})";
  CHECK(&ProtocolChoice(with_list(good)).first(now) == &session);
  for (const std::string text :
       {R"({"protocol":"2025-06-19","decided":1790000000,"x":1})",
        R"({"protocol":"2025-06-18","decided":"1790000000","x":1})",
        R"({"protocol":"2025-06-18","decided":1790000000)", R"({"protocol":"2025-06-18")",
        R"({"protocol":")", R"({"protocol":"2025-06-18","decided":99999999999999999999999,"x":1})",
        R"({"x":1,"protocol":"2025-06-18","decided":1790000000})", ""}) {
    INFO(text);
    CHECK(&ProtocolChoice(with_list(text)).first(now) == &stateless);
  }
}

TEST_CASE("the revision in the profile overrides the verdict") {
  ServerDef def = with_list(R"({"protocol":"2025-06-18","decided":1790000000,"x":1})");
  def.protocol = ProtocolPin::v2026_07_28;
  ProtocolChoice newest(def);
  CHECK(&newest.first(now) == &stateless);
  CHECK(newest.second(now) == nullptr);
  newest.ended_on_probe();
  CHECK(&newest.first(now) == &stateless);
  CHECK(newest.stamped("{}") == "{}");
  def.protocol = ProtocolPin::v2025_03_26;
  ProtocolChoice choice(def);
  const ServerEdge &edge = choice.first(now);
  CHECK(mcp::member(edge.opening_params(0), "protocolVersion") == R"("2025-03-26")");
  ServerDef sse;
  sse.type = "sse";
  CHECK(&ProtocolChoice(sse).first(now) == &session);
  CHECK(ProtocolChoice(sse).second(now) == nullptr);
}

TEST_CASE("the stateless edge provides the members of each request") {
  const std::string meta =
      "{" + stateless.request_meta(cap::roots | cap::roots_changed | cap::sampling, 4) + "}";
  REQUIRE(mcp::valid_json(meta));
  const auto key = [&](const char *name) {
    return std::string(mcp::member(meta, "io.modelcontextprotocol/" + std::string(name)));
  };
  CHECK(key("protocolVersion") == R"("2026-07-28")");
  CHECK(key("clientCapabilities") == R"({"roots":{},"sampling":{}})");
  CHECK(mcp::member(key("clientInfo"), "name") == R"("bulkhead")");
  CHECK(key("logLevel") == R"("error")");
  CHECK(stateless.request_meta(0, -1).find("logLevel") == std::string::npos);
  CHECK(mcp::member(mcp::member(stateless.opening_params(0), "_meta"),
                    "io.modelcontextprotocol/clientCapabilities") == "{}");
}

TEST_CASE("the result of server/discover is parsed") {
  const auto opened = stateless.opened(
      R"({"resultType":"complete","supportedVersions":["2025-11-25","2026-07-28"],)"
      R"("capabilities":{"tools":{},"resources":{"subscribe":true}},"instructions":"use it"})");
  REQUIRE(opened.has_value());
  CHECK(opened->revision == "2026-07-28");
  CHECK((opened->caps.tools && opened->caps.subscribe));
  CHECK_FALSE(opened->caps.prompts);
  CHECK(opened->instructions == "use it");
  for (const std::string other :
       {R"({"supportedVersions":["2027-01-01","2025-11-25"],"capabilities":{}})",
        R"({"supportedVersions":[]})", R"({"supportedVersions":"2026-07-28"})",
        R"({"supportedVersions":[2026]})", "{}", "[]", "null"}) {
    INFO(other);
    CHECK_FALSE(stateless.opened(other).has_value());
  }
  CHECK(stateless.opened(R"({"supportedVersions":["2027-01-01","2025-11-25"]})").error().text ==
        "supports MCP revisions 2027-01-01, 2025-11-25, not 2026-07-28");
}
