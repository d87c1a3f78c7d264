// Tests scanning messages from clients: invalid messages, the choice of the edge, batches, records
// that cannot be stored, and members that are dropped or refused.
#include "route/client_messages.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "route/message_world.hpp"

using namespace bulkhead;

namespace {

using Lines = std::vector<std::string>;

// An edge that stores what it receives, and answers each request whose method is not "hold".
struct FakeEdge : ClientEdge {
  ClientAnswers &answers;
  std::string header;  // if not empty, the edge handles only messages with this MCP header
  bool batches = true;
  bool initializes = false;
  Lines received;
  std::function<void()> inside;  // called inside the next request
  bool had_headers = false;      // of the last request

  explicit FakeEdge(ClientAnswers &to, std::string only = {})
      : answers(to), header(std::move(only)) {}
  bool speaks(const Session &, const Message &, const WireHeaders *headers) const override {
    return header.empty() ||
           (headers != nullptr && !headers->empty() && bh::view(headers->front().value) == header);
  }
  bool begins_session(const mcp::Scan &request) const override {
    return request.method == mcp::Method::initialize;
  }
  bool takes_batches(const Session &) const override { return batches; }
  void request(Session &s, Incoming &incoming) override {
    received.emplace_back(incoming.message.bytes);
    had_headers = incoming.headers != nullptr;
    if (initializes) s.initialized = true;
    call_once(inside);
    if (incoming.message[incoming.message.scan->method_text] == "\"hold\"") return;
    answers.result(incoming, "{}");
  }
  void notification(Session &, const Message &message) override {
    received.emplace_back(message.bytes);
  }
};

struct ClientWorld : MessageWorld {
  Profile profile;
  FakeTelemetry telemetry;
  SessionJournal journal{sessions, *loop, profile.limits};
  FakeEdge edge{answers}, next{answers, "2026-07-28"};
  ClientMessages messages{
      {profile, *loop, counters, sessions, calls, recorder, journal, answers, asks, edge}};
  bh_delivery delivery{};

  ClientWorld() { messages.add(next); }
  // Returns true if the client receives a response.
  bool deliver(const std::string &text, const WireHeaders *headers = nullptr) {
    client.sent.clear();
    delivery = {};
    const bh_session handle = first.handle;
    return messages.handle(first, {handle, 7, 0}, text, &delivery, headers);
  }
  Lines responses() const {
    Lines out;
    for (const FakeClient::Sent &sent : client.sent) {
      if (sent.kind == BH_OUT_ANSWER) out.push_back(sent.text);
    }
    return out;
  }
  // Returns "ID CODE STATUS" of the only response, which must be an error. If the error has no id,
  // ID is empty.
  std::string error() const {
    REQUIRE(client.sent.size() == 1);
    const std::string &text = client.sent[0].text;
    return std::string(mcp::member(text, "id")) + " " + std::string(at(text, {"error", "code"})) +
           " " + std::to_string(client.sent[0].http_status);
  }
  bool refuses(const std::string &text) {
    const std::uint64_t before = counters.refused_messages;
    edge.received.clear();
    const bool answered = deliver(text);
    return answered && edge.received.empty() && counters.refused_messages == before + 1;
  }
};

std::string request(const std::string &id, const std::string &params = "{}",
                    const std::string &method = "ping", const std::string &more = "") {
  return R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":")" + method + R"(","params":)" + params +
         more + "}";
}

const std::string note = R"({"jsonrpc":"2.0","method":"notifications/initialized"})";

std::size_t elements_of(std::string_view array) {
  std::size_t count = 0;
  mcp::for_each_element(array, [&count](std::string_view) {
    ++count;
    return true;
  });
  return count;
}

}  // namespace

TEST_CASE("an invalid or too large message is refused with its id, if it has one") {
  ClientWorld w;
  w.profile.limits.message_bytes = 200;
  const std::vector<std::pair<std::string, std::string>> invalid = {
      {"{", " -32700 400"},
      {"true", " -32600 400"},
      {R"({"jsonrpc":"2.0","id":1,"method":7})", "1 -32600 400"},
      {R"({"jsonrpc":"1.0","id":"a","method":"ping"})", "\"a\" -32600 400"},
      {request("5", R"({"name":"a","name":"b"})", "tools/call"), "5 -32600 400"},
      {request("6", R"({"x":")" + std::string(200, 'x') + "\"}"), " -32600 413"},
  };
  for (const auto &[text, want] : invalid) {
    INFO(text);
    CHECK(w.refuses(text));
    CHECK(w.error() == want);
    CHECK((w.delivery.flags & BH_DELIVERED_REFUSED) != 0);
  }
  const std::string frame = request("7", R"({"x":""})");
  const std::string fits = request("7", R"({"x":")" + std::string(200 - frame.size(), 'x') + "\"}");
  REQUIRE(fits.size() == 200);
  CHECK(w.deliver(fits));
  CHECK(w.delivery.flags == 0);
  CHECK(w.edge.received == Lines{fits});
  CHECK(w.responses() == Lines{R"({"jsonrpc":"2.0","id":7,"result":{}})"});
}

TEST_CASE("the first edge that handles a message receives it unchanged") {
  ClientWorld w;
  bh_header revision{bh::str("MCP-Protocol-Version"), bh::str("2026-07-28")};
  const WireHeaders headers(&revision, 1);
  const std::string one = request("1"), two = request("2");
  CHECK(w.deliver(one));
  CHECK_FALSE(w.edge.had_headers);
  CHECK(w.deliver(two, &headers));
  CHECK(w.next.had_headers);
  CHECK_FALSE(w.deliver(note, &headers));
  CHECK(w.responses().empty());
  revision.value = bh::str("2025-11-25");
  CHECK_FALSE(w.deliver(note, &headers));
  CHECK(w.edge.received == Lines{one, note});
  CHECK(w.next.received == Lines{two, note});
  // If no edge handles the message, the last edge receives it.
  w.edge.header = "2024-11-05";
  CHECK(w.deliver(one));
  CHECK(w.edge.received.size() == 3);
}

TEST_CASE("a sessionless request that begins a session is left to the transport") {
  ClientWorld w;
  w.edge.initializes = true;
  const std::string initialize = request("1", "{}", "initialize");
  w.first.sessionless = Session::Sessionless::in_delivery;
  CHECK_FALSE(w.deliver(initialize));
  CHECK(w.first.sessionless == Session::Sessionless::begins_session);
  CHECK(w.edge.received.empty());
  w.first.sessionless = Session::Sessionless::no;
  w.first.initialized = false;
  CHECK(w.deliver(initialize));
  CHECK(w.delivery.flags == BH_DELIVERED_INITIALIZE);
  // The session ends while the request is handled.
  w.edge.inside = [&w] { w.sessions.erase(w.first.handle); };
  const bh_session handle = w.first.handle;
  w.delivery = {};
  CHECK(w.messages.handle(w.first, {handle, 7, 0}, request("2", "{}", "initialize hold"),
                          &w.delivery));
  CHECK(w.delivery.flags == 0);
}

TEST_CASE("params that the profile does not accept are forwarded, dropped or refused") {
  ClientWorld w;
  const std::string extra =
      request("1", R"({"name":"t","odd":1,"arguments":{"odd":2}})", "tools/call");
  CHECK(w.deliver(extra));
  w.profile.unknown_params = UnknownParams::drop;
  CHECK(w.deliver(extra));
  REQUIRE(w.edge.received.size() == 2);
  CHECK(w.edge.received[0] == extra);
  CHECK(at(w.edge.received[1], {"params", "odd"}).empty());
  CHECK(at(w.edge.received[1], {"params", "arguments"}) == R"({"odd":2})");
  CHECK(w.counters.dropped_members == 1);
  w.profile.unknown_params = UnknownParams::refuse;
  CHECK(w.refuses(extra));
  CHECK(w.error() == "1 -32602 0");
  CHECK(w.client.sent[0].text.find("odd") != std::string::npos);
  // Unknown members of the envelope are dropped in any case.
  CHECK(w.deliver(request("2", "{}", "ping", R"(,"odd":1)")));
  CHECK(w.edge.received == Lines{request("2")});
  CHECK(w.counters.dropped_members == 2);
}

TEST_CASE("an invalid progress token refuses a request and drops a notification") {
  ClientWorld w;
  const std::string meta = R"({"_meta":{"progressToken":{"a":1}}})";
  CHECK(w.refuses(request("\"p\"", meta)));
  CHECK(w.error() == "\"p\" -32602 0");
  CHECK_FALSE(w.deliver(R"({"jsonrpc":"2.0","method":"notifications/x","params":)" + meta + "}"));
  CHECK(w.edge.received.empty());
  CHECK(w.counters.refused_messages == 2);
}

TEST_CASE("a batch is answered with one array, in the order in which its requests are answered") {
  ClientWorld w;
  const std::string batch = "[" + request("1") + "," + note + ",[" + request("9") + "]," +
                            R"({"jsonrpc":"2.0","id":3,"method":1},)" + request("4") + "]";
  CHECK(w.deliver(batch));
  CHECK(w.edge.received == Lines{request("1"), note, request("4")});
  REQUIRE(w.responses().size() == 1);
  const std::string body = w.responses()[0];
  Lines seen;
  mcp::for_each_element(body, [&seen](std::string_view one) {
    seen.push_back(std::string(mcp::member(one, "id")) + " " +
                   std::string(at(one, {"error", "code"})));
    return true;
  });
  CHECK(seen == Lines{"1 ", " -32600", "3 -32600", "4 "});
  CHECK(w.counters.refused_messages == 2);

  SECTION("a batch without requests has no response") {
    CHECK_FALSE(w.deliver("[" + note + "," + note + "]"));
    CHECK(w.responses().empty());
  }
  SECTION("the edge's protocol generation has no batches") {
    w.edge.batches = false;
    CHECK(w.refuses("[" + request("1") + "]"));
    CHECK(w.error() == " -32600 400");
  }
  SECTION("a batch ends with its session") {
    w.edge.received.clear();
    w.edge.inside = [&w] { w.sessions.erase(w.first.handle); };
    const bh_session handle = w.first.handle;
    w.client.sent.clear();
    w.messages.handle(w.first, {handle, 7, 0}, "[" + request("1") + "," + request("2") + "]",
                      &w.delivery);
    CHECK(w.edge.received == Lines{request("1")});
    CHECK(w.client.sent.empty());
  }
}

TEST_CASE("a batch is limited to 256 messages") {
  for (const int count : {256, 257, 300}) {
    ClientWorld w;
    std::string batch = "[";
    for (int i = 0; i < count; ++i) batch += (i == 0 ? "" : ",") + request(std::to_string(i));
    CHECK(w.deliver(batch + "]"));
    CHECK(w.edge.received.size() == 256);
    REQUIRE(w.responses().size() == 1);
    CHECK(elements_of(w.responses()[0]) == (count == 256 ? 256u : 257u));
    const bool limited = w.responses()[0].find("at most 256 messages") != std::string::npos;
    CHECK(limited == (count != 256));
  }
}

TEST_CASE("requests are refused while they cannot be recorded, if the profile requires records") {
  ClientWorld w;
  w.telemetry.needs = BH_TELEMETRY_BLOCKS;
  w.recorder.add_sink(&telemetry_table, &w.telemetry);
  CHECK(w.deliver(request("1")));
  CHECK(w.edge.received.size() == 1);
  // The records of the calls in flight need the remaining place.
  std::vector<Call *> open;
  while (!w.recorder.must_refuse(w.calls.size())) {
    Call *call = w.calls.open();
    REQUIRE(call != nullptr);
    open.push_back(call);
  }
  w.edge.received.clear();
  CHECK(w.deliver(request("2")));
  CHECK(w.error() == "2 -32603 0");
  CHECK(w.edge.received.empty());
  CHECK(w.counters.refused_unrecorded == 1);
  CHECK_FALSE(w.deliver(note));
  CHECK(w.edge.received == Lines{note});
  while (w.recorder.must_refuse(w.calls.size())) {
    REQUIRE(!open.empty());
    w.calls.close(*open.back());
    open.pop_back();
  }
  CHECK(w.deliver(request("3")));
  CHECK(w.edge.received == Lines{note, request("3")});
  for (Call *call : open) w.calls.close(*call);
}

TEST_CASE("a response from a client is passed to the request of the server that it answers") {
  ClientWorld w;
  const Scanned ask(
      R"({"jsonrpc":"2.0","id":"r","method":"elicitation/create","params":{"message":"m"}})");
  w.call_of(w.first);
  w.asks.request(w.lane, 0, ask.get());
  REQUIRE(w.sent_to(w.first, BH_OUT_ASK).size() == 1);
  const std::string id(mcp::member(w.sent_to(w.first, BH_OUT_ASK)[0], "id"));
  CHECK_FALSE(w.deliver(R"({"jsonrpc":"2.0","id":"unknown","result":{}})"));
  CHECK(w.lane.messages.empty());
  CHECK_FALSE(w.deliver(R"({"jsonrpc":"2.0","id":)" + id + R"(,"result":{"action":"accept"}})"));
  CHECK(w.lane.messages == Lines{R"({"jsonrpc":"2.0","id":"r","result":{"action":"accept"}})"});
  CHECK(w.edge.received.empty());
}
