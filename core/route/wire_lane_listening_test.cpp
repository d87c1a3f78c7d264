// Tests how changes at a server without sessions reach its lane: resource subscriptions, and lists
// whose changes the server reports.
#include "bulkhead/cpp/json_writer.hpp"
#include "route/lane_world.hpp"

using namespace bulkhead;

namespace {

const std::string both_lists =
    R"({"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{)"
    R"("tools":{"listChanged":true},"prompts":{"listChanged":true},)"
    R"("resources":{"subscribe":true}}})";

struct Watched : LaneWorld {
  // `type` is the server's type. Messages over "http" may arrive in another order than they were
  // sent.
  explicit Watched(const std::string &type = "stdio") : LaneWorld(8, ProtocolPin::v2026_07_28) {
    upstream->remove(lane);
    def.type = type;
    upstream = std::make_unique<Upstream>(*this, def);
    upstream->connector = &connector;
    upstream->self = this;
    lane = static_cast<WireLane *>(upstream->lane_for(0, 0));
    lane->start();
    answer("server/discover", both_lists);
  }
  void list(const std::string &tools = R"({"name":"x"})") {
    answer("tools/list", R"({"tools":[)" + tools + R"(],"ttlMs":2000})");
    answer("prompts/list", R"({"prompts":[{"name":"p"}]})");
    answer("resources/list", R"({"resources":[]})");
    answer("resources/templates/list", R"({"resourceTemplates":[]})");
    REQUIRE(lane->state() == LaneState::ready);
  }
  std::uint64_t listen() {
    const Exchange *e = own("subscriptions/listen");
    return e == nullptr ? 0 : e->id;
  }
  std::size_t listens() const {
    const Texts all = methods();
    return static_cast<std::size_t>(
        std::count(all.begin(), all.end(), R"("subscriptions/listen")"));
  }
  std::string watched() const {
    for (auto at = sent.rbegin(); at != sent.rend(); ++at) {
      const std::string_view params = mcp::member(*at, "params");
      const std::string_view filter = mcp::member(params, "notifications");
      if (!filter.empty()) return std::string(mcp::member(filter, "resourceSubscriptions"));
    }
    return "none";
  }
  void acknowledges(std::uint64_t id, const std::string &uris,
                    const std::string &lists = R"("toolsListChanged":true,)") {
    const Scanned m(
        R"({"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":)"
        R"({"notifications":{)" +
        lists + R"("resourceSubscriptions":)" + uris +
        R"(},"_meta":{"io.modelcontextprotocol/subscriptionId":)" + std::to_string(id) + "}}}");
    lane->subscriptions().acknowledged(m.get());
  }
  // Makes a client's resources/subscribe request.
  Call &subscribe(const std::string &uri) {
    lane->watches[uri];
    return request("resources/subscribe", mcp::Method::resources_subscribe, uri);
  }
  Call &request(const std::string &method, mcp::Method known, const std::string &uri) {
    const Scanned m(R"({"jsonrpc":"2.0","id":"c","method":")" + method + R"(","params":{"uri":)" +
                    bh::json::quoted(uri) + "}}");
    Call &call = *calls.open();
    call.method = known;
    call.name = uri;
    Exchange &e = *table.open();
    e.call = &call;
    e.method = known;
    call.exchange = &e;
    call.stage = Stage::at_server;
    lane->attach(e);
    const std::string token = bh::json::quoted(uri);
    CallInHand hand{m.get(), {lane, {}, m.scan.uri}, {}, {}, state};
    hand.target.resolved.original_token = token;
    lane->submit(e, hand);
    return call;
  }
  // Ends the call as if its client had cancelled it.
  void cancel(Call &call) {
    const std::uint64_t id = call.exchange->id;
    const bool was = was_sent(call);
    drop(*std::exchange(call.exchange, nullptr));
    lane->watches.erase(call.name);
    lane->retract(id, was, {});
    lane->request_quietly(mcp::Method::resources_unsubscribe, "{}");
  }
  bool wait_for_listens(std::size_t count) {
    return wait_for(*loop, [&] { return listens() >= count; });
  }
  void idle(int ms) {
    for (int i = 0; i < ms / 10; ++i) loop->poll(10);
  }
  bool on(const std::string &uri) const { return lane->watches.find(uri)->second.on; }
};

}  // namespace

TEST_CASE("an acknowledgement answers the subscriptions that its request contains") {
  Watched w;
  w.list();
  w.acknowledges(w.listen(), "[]");
  const Call &one = w.subscribe("a:\"1\""), &two = w.subscribe("b:2"), &again = w.subscribe("b:2");
  CHECK(w.lane->in_flight == 0);
  REQUIRE(w.wait_for_listens(2));
  CHECK(w.watched() == R"(["a:\"1\"","b:2"])");
  const std::uint64_t late = w.subscribe("c:3").exchange->id;  // waits for the next listen
  REQUIRE(w.own("subscriptions/listen") != nullptr);
  const std::uint64_t second = w.lane->watches["b:2"].listen;
  const std::string accepted =
      R"(["a:\u0022\u0031\"","\u0063:3",7,[],")" + std::string(99, 'b') + R"(","x:9","a:\"1\""])";
  w.acknowledges(second, accepted);
  REQUIRE(w.answers.size() == 1);
  CHECK(mcp::member(w.answers[0], "result") == "{}");
  CHECK(one.exchange == nullptr);
  REQUIRE(w.failures.size() == 2);
  CHECK(w.failures[0].call == again.id);  // the newest first
  CHECK(w.failures[1].call == two.id);
  CHECK(w.failures[0].error_code == code::invalid_params);
  CHECK(w.failures[0].text == "server \"s\": it does not report changes of \"b:2\"");
  CHECK(w.on("a:\"1\""));
  CHECK_FALSE(w.on("b:2"));
  CHECK_FALSE(w.on("c:3"));  // it was not requested yet
  CHECK(w.table.get(late) != nullptr);
  REQUIRE(w.wait_for_listens(3));
  w.acknowledges(w.lane->watches["c:3"].listen, R"(["c:3","b:2"])");
  CHECK(w.table.get(late) == nullptr);
  CHECK(w.answers.size() == 2);
  // A later acknowledgement without a resource ends its subscription.
  CHECK_FALSE(w.on("a:\"1\""));
  CHECK(w.on("b:2"));
  w.subscribe("b:2");  // the server already reports its changes
  CHECK(w.answers.size() == 3);
  w.idle(50);
  CHECK(w.listens() == 3);
}

TEST_CASE("a cancelled subscription leaves nothing behind, and the server does not know it") {
  Watched w;
  w.list();
  w.acknowledges(w.listen(), "[]");
  Call &kept = w.subscribe("a:1");
  for (int i = 0; i < 3; ++i) {
    Call &call = w.subscribe("b:" + std::to_string(i));
    CHECK_FALSE(was_sent(call));
    CHECK_FALSE(may_have_run(call));
    w.cancel(call);
  }
  CHECK(w.notified.empty());
  CHECK(w.abandoned.empty());
  CHECK(w.lane->exchanges.size == 2);  // the listen request, and the kept subscription
  REQUIRE(w.wait_for_listens(2));
  CHECK(w.watched() == R"(["a:1"])");
  w.acknowledges(w.lane->watches["a:1"].listen, R"(["a:1","b:0"])");
  CHECK(w.answers.size() == 1);
  CHECK(w.failures.empty());
  CHECK(kept.exchange == nullptr);
}

TEST_CASE("a lost connection fails the subscriptions that wait, but not the calls in the queue") {
  Watched w;
  w.list();
  const std::uint64_t waits = w.subscribe("a:1").id, also = w.subscribe("b:2").id;
  for (int i = 0; i < 9; ++i) w.call();
  const std::uint64_t queued = w.last->id;
  w.lane->down({BH_E_UNAVAILABLE, "gone"}, 0);
  REQUIRE(w.failures.size() == 10);
  CHECK(std::count_if(w.failures.begin(), w.failures.end(), [&](const auto &failure) {
          return failure.call == waits || failure.call == also;
        }) == 2);
  CHECK(std::none_of(w.failures.begin(), w.failures.end(),
                     [&](const auto &failure) { return failure.call == queued; }));
  CHECK(w.lane->in_flight == 1);  // server/discover of the new connection
}

TEST_CASE("a failed request fails its subscriptions with the server's reason") {
  struct Case {
    std::string error, reason;
  };
  const auto [error, reason] = GENERATE(
      Case{R"({"code":-32601,"message":"no such method"})", "no such method"},
      Case{R"({"code":-32000,"message":"too many listeners"})", "too many listeners"}, Case{});
  Watched w;
  w.list();
  w.acknowledges(w.listen(), "[]");
  w.subscribe("a:1");
  w.subscribe("b:2");
  REQUIRE(w.wait_for_listens(2));
  const std::uint64_t second = w.lane->watches["a:1"].listen;
  if (error.empty()) {
    const Error failure{BH_E_IO, "connection reset"};
    w.lane->own_answer(*w.table.get(second), nullptr, {}, &failure);
  } else {
    const Scanned m(R"({"jsonrpc":"2.0","id":)" + std::to_string(second) + R"(,"error":)" + error +
                    "}");
    w.lane->own_answer(*w.table.get(second), &m.scan, m.text, nullptr);
  }
  REQUIRE(w.failures.size() == 2);
  for (const auto &failure : w.failures) {
    CHECK(failure.error_code == code::internal_error);
    CHECK(failure.text.find(error.empty() ? "connection reset" : reason) != std::string::npos);
  }
  const std::uint64_t next = w.subscribe("c:3").exchange->id;
  CHECK(w.table.get(next) != nullptr);  // waits for the next request
  w.lane->close();
}

TEST_CASE("an acknowledgement inside the send answers its subscriptions") {
  Watched w;
  w.list();
  w.acknowledges(w.listen(), "[]");
  w.subscribe("a:1");
  w.subscribe("b:2");
  w.inside = [&] {
    w.acknowledges(std::stoull(std::string(mcp::member(w.sent.back(), "id"))), R"(["b:2"])");
  };
  REQUIRE(w.wait_for_listens(2));
  CHECK(w.answers.size() == 1);
  CHECK(w.failures.size() == 1);
  CHECK(w.on("b:2"));
}

TEST_CASE("an unsupported listen request is sent again for changed resources only") {
  Watched w;
  w.list();
  w.refuse("subscriptions/listen", R"({"code":-32601,"message":"no such method"})");
  w.lane->request_quietly(mcp::Method::logging_set_level, R"({"level":"info"})");
  w.idle(100);
  CHECK(w.listens() == 1);
  w.subscribe("a:1");
  REQUIRE(w.wait_for_listens(2));
  w.refuse("subscriptions/listen", R"({"code":-32601,"message":"no such method"})");
  CHECK(w.failures.size() == 1);
}

TEST_CASE("a list that could not be read after a change is read when a client requests it") {
  constexpr std::uint64_t ms = 1'000'000;
  Watched w;
  w.list();
  w.acknowledges(w.listen(), "[]", R"("toolsListChanged":true,"promptsListChanged":true,)");
  const ItemKind kind = GENERATE(ItemKind::tool, ItemKind::prompt);
  const std::string method(facts(kind).list_method_text);
  w.lane->lists().changed(kind);
  w.refuse(method, R"({"code":-32603,"message":"busy"})");
  w.sent.clear();
  const std::uint64_t now = w.loop->now_ns();
  w.lane->refresh(kind, now);
  CHECK(w.sent.empty());  // at most once a second
  w.lane->refresh(kind, now + (ListAge::min_refresh_ms + 100) * ms);
  REQUIRE(w.methods() == Texts{"\"" + method + "\""});
  w.answer(method, R"({")" + std::string(facts(kind).member) + R"(":[]})");
  CHECK(w.lane->items(kind).items.empty());
}

TEST_CASE("lists that arrive before the first acknowledgement are read again over HTTP") {
  const auto read_again = [](const std::string &type, const std::string &lists) {
    Watched w(type);
    const std::uint64_t first = w.listen();
    w.list();
    w.sent.clear();
    w.acknowledges(first, "[]", lists);
    const Texts again = w.methods();
    w.sent.clear();
    w.subscribe("a:1");  // only the first acknowledgement counts
    REQUIRE(w.wait_for_listens(1));
    w.acknowledges(w.listen(), "[]", lists);
    CHECK(w.methods().size() == 1);
    return again;
  };
  const std::string both = R"("toolsListChanged":true,"promptsListChanged":true,)";
  CHECK(read_again("http", both) == Texts{R"("tools/list")", R"("prompts/list")"});
  CHECK(read_again("http", R"("promptsListChanged":true,)") == Texts{R"("prompts/list")"});
  CHECK(read_again("stdio", both).empty());
  Watched w("http");  // the acknowledgement arrives first
  w.acknowledges(w.listen(), "[]", both);
  w.sent.erase(std::remove_if(w.sent.begin(), w.sent.end(),
                              [](const auto &text) { return text.find("/list\"") == text.npos; }),
               w.sent.end());
  w.list();
  CHECK(w.methods().size() == 4);  // each list is read once
}

TEST_CASE("a list that the server no longer has is not requested again") {
  constexpr std::uint64_t ms = 1'000'000;
  Watched w;
  w.list();
  w.lane->down({BH_E_UNAVAILABLE, "gone"}, 0);
  w.sent.erase(w.sent.begin(), w.sent.end() - 1);
  w.answer("server/discover",
           R"({"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}})");
  w.answer("tools/list", R"({"tools":[{"name":"x"}]})");
  REQUIRE(w.lane->state() == LaneState::ready);
  w.sent.clear();
  const std::uint64_t later = w.loop->now_ns() + 60'000 * ms;
  for (const ItemKind kind : all_item_kinds) w.lane->refresh(kind, later);
  CHECK(w.methods() == Texts{R"("tools/list")"});
}
