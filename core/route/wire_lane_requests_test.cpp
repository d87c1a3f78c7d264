// Tests the requests that a lane sends for clients to a server without sessions.
#include "route/call_input.hpp"
#include "route/lane_world.hpp"
#include "route/splice.hpp"

using namespace bulkhead;

namespace {

const std::string discovered =
    R"({"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}})";

struct StatelessLane : LaneWorld {
  StatelessLane() : LaneWorld(8, ProtocolPin::automatic) { lane->start(); }
  void list() { answer("tools/list", R"({"tools":[{"name":"x"}]})"); }
};

}  // namespace

TEST_CASE("static roots are declared for clients without a session only if they declare roots") {
  StatelessLane w;
  ServerDef def = w.def;
  def.roots = RootsMode::static_list;
  def.root_folders = {"/srv"};
  const auto upstream = w.replaced_by(def);
  w.lane->start();
  w.answer("server/discover", discovered);
  w.list();
  const auto declared = [&](bool sessionless, ClientCaps caps) {
    Session client;
    client.caps = caps;
    client.sessionless = sessionless ? Session::Sessionless::in_delivery : Session::Sessionless::no;
    w.client = &client;
    w.call();
    w.finish(*w.last);
    return std::string(mcp::member(mcp::member(mcp::member(w.sent.back(), "params"), "_meta"),
                                   "io.modelcontextprotocol/clientCapabilities"));
  };
  for (int i = 0; i < 2; ++i) {
    CHECK(declared(true, 0) == "{}");
    CHECK(declared(true, cap::roots) == R"({"roots":{}})");
    CHECK(declared(false, 0) == R"({"roots":{}})");
  }
  w.remove(*upstream);
}

TEST_CASE("the log level of the call's client is in its request, and only there") {
  StatelessLane w;
  w.answer("server/discover",
           R"({"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"logging":{}}})");
  w.list();
  Session quiet, loud;
  loud.log_level = 4;
  const auto level_of = [&](Session *client) {
    w.client = client;
    w.call();
    const std::string_view meta = mcp::member(mcp::member(w.sent.back(), "params"), "_meta");
    REQUIRE(meta.starts_with('{'));
    CHECK(mcp::member(meta, "io.modelcontextprotocol/protocolVersion") == R"("2026-07-28")");
    w.finish(*w.last);
    return std::string(mcp::member(meta, "io.modelcontextprotocol/logLevel"));
  };
  CHECK(level_of(&quiet).empty());
  CHECK(level_of(&loud) == R"("error")");
  loud.log_level = 0;
  CHECK(level_of(&loud) == R"("debug")");
  CHECK(level_of(&quiet).empty());
}

TEST_CASE("a state from before a change of the server's revision is not sent to the server") {
  struct Case {
    ProtocolPin pin;
    std::string token;  // of the server, in the state that the client has returned
    bool is_sent;
  };
  // A server with sessions has no token: its client was asked because of error -32042.
  const auto [pin, token, is_sent] = GENERATE(
      Case{ProtocolPin::v2026_07_28, "", false}, Case{ProtocolPin::v2026_07_28, "\"own\"", true},
      Case{ProtocolPin::v2025_11_25, "", true}, Case{ProtocolPin::v2025_11_25, "\"own\"", false});
  LaneWorld w(8, pin);
  w.lane->start();
  if (pin == ProtocolPin::v2026_07_28) {
    w.answer("server/discover", discovered);
  } else {
    w.initialize();
  }
  w.answer("tools/list", R"({"tools":[{"name":"x"}]})");
  REQUIRE(w.lane->state() == LaneState::ready);
  w.sent.clear();
  w.members = R"("requestState":"sealed","inputResponses":{"url-1":{"action":"accept"}},"_meta":)"
              R"({"io.modelcontextprotocol/protocolVersion":"2026-07-28"},)";
  w.state = token;
  w.call();
  CHECK(w.sent.size() == (is_sent ? 1 : 0));
  REQUIRE(w.failures.size() == (is_sent ? 0 : 1));
  if (!is_sent) {
    CHECK(w.failures[0].error_code == code::invalid_params);
    CHECK(w.failures[0].text.find("before a change of the server's protocol revision") !=
          std::string::npos);
    return;
  }
  const std::string_view params = mcp::member(w.sent[0], "params");
  CHECK(mcp::member(params, "requestState") == token);
  const bool has_responses = !mcp::member(params, "inputResponses").empty();
  CHECK(has_responses == (pin == ProtocolPin::v2026_07_28));
}

TEST_CASE("the client's input is not sent to a server that has sessions now") {
  struct Case {
    ProtocolPin pin;
    std::uint32_t rounds;
    bool is_sent;
  };
  const auto [pin, rounds, is_sent] =
      GENERATE(Case{ProtocolPin::v2025_11_25, 1, false}, Case{ProtocolPin::v2025_11_25, 0, true},
               Case{ProtocolPin::v2026_07_28, 1, true});
  LaneWorld w(8, pin);
  w.lane->start();
  pin == ProtocolPin::v2026_07_28 ? w.answer("server/discover", discovered) : w.initialize();
  w.answer("tools/list", R"({"tools":[{"name":"x"}]})");
  REQUIRE(w.lane->state() == LaneState::ready);
  w.sent.clear();
  w.input = std::make_unique<CallInput>();
  w.input->rounds = rounds;
  if (rounds != 0)
    w.input->members = R"("inputResponses":{"k":{"pin":"1234"}},"requestState":"s",)";
  w.call();
  CHECK(w.sent.size() == (is_sent ? 1 : 0));
  REQUIRE(w.failures.size() == (is_sent ? 0 : 1));
  if (!is_sent) {
    CHECK(w.failures[0].error_code == code::internal_error);
    CHECK(w.failures[0].text.find("before a change of the server's protocol revision") !=
          std::string::npos);
    return;
  }
  CHECK(mcp::member(mcp::member(w.sent[0], "params"), "requestState") ==
        (rounds == 0 ? "" : R"("s")"));
}

TEST_CASE("a request that cannot be rewritten fails, and the server receives nothing of it") {
  StatelessLane w;
  w.answer("server/discover", discovered);
  w.list();
  w.sent.clear();
  // No message has such ranges. They make the edits of the request overlap.
  w.edit_scan = [](mcp::Scan *scan) { scan->progress_token = scan->id; };
  w.call();
  CHECK(w.sent.empty());
  CHECK(w.notified.empty());
  REQUIRE(w.failures.size() == 1);
  CHECK(w.failures[0].call == w.last->id);
  CHECK(w.failures[0].error_code == code::internal_error);
  CHECK(w.failures[0].text == Splice::failure);
  CHECK(w.lane->in_flight == 0);
  w.finish(*w.last);
  CHECK(w.lane->state() == LaneState::ready);
  w.edit_scan = {};
  CHECK_FALSE(w.call().empty());
  w.finish(*w.last);
}
