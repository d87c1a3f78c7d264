// Tests that a reload changes only those servers, names, pins and rules that differ.
#include "route/reload.hpp"

#include <catch2/catch.hpp>
#include <map>

#include "route/wire_world.hpp"

using namespace bulkhead;

namespace {

using Texts = std::vector<std::string>;

struct ReloadWorld : WireWorld {
  Upstreams upstreams;
  FilteredLists filters{{gate, pins, names, profile.limits, counters, *loop,
                         [](std::int32_t, std::string_view) {}, [](std::uint64_t, bool) {},
                         [](View &) {}, [] {}}};
  SessionJournal journal{sessions, *loop, profile.limits};
  std::uint32_t status_changes = 0, drained_servers = 0;
  Views views{{upstreams, sessions, names, profile, *loop, recorder, answers, filters,
               [](Session &, Incoming &) {}, [](View &) {},
               [this](Lane &going) { reload.lane_goes(going); }, [] {}, [] {}}};
  Reload reload{{profile, names, gate, pins, upstreams, views, sessions, subscriptions, calls,
                 call_answers, ends, table, desk, inputs, draining_servers, journal,
                 [this] { ++status_changes; }, [this] { ++drained_servers; }}};
  std::map<std::string, FakeServer> fakes;  // keyed by the connection name that the test assigns
  Session &first = joined(), &second = joined();

  ~ReloadWorld() override {
    views.end_all();
    for (const auto &server : upstreams.all()) {
      while (!server->lanes().empty()) server->remove(server->lanes().back().get());
    }
    draining_servers.end_all();
  }
  // These overrides connect the objects in the same way as the Router does.
  void lane_changed(Lane &changed) override { views.lane_changed(changed); }
  void items_changed(Lane &changed) override { views.items_changed(changed); }
  void lane_ready(Lane &ready) override { Subscriptions::lane_ready(ready); }
  void tools_listed(const Lane &listed) override { pins.listed(listed); }
  void lane_ends(Lane &ended) override { subscriptions.forget_lane(ended); }
  void refused(const JudgedEvent &event) override { subscriptions.refused(event); }
  std::vector<std::uint64_t> waiting_for(const Lane &of) const override {
    return reload.waiting_for(of);
  }
  void end_drained(Call &call, Lane &at) override { reload.end_drained(call, at); }
  void drained() override { reload.drained(); }

  Session &joined() {
    Session &s = open_session(sessions, client);
    s.initialized = true;
    views.join(s);
    return s;
  }
  NextUpstream added(const std::string &connection, ServerDef def) {
    NextUpstream next;
    next.fresh = behind(fakes[connection], std::move(def));
    return next;
  }
  NextUpstream added(const std::string &name) { return added(name, server_named(name)); }
  NextUpstream changed(const std::string &connection, const std::string &name) {
    NextUpstream next = added(connection, server_named(name));
    next.replaces = upstreams.find(name);
    return next;
  }
  NextUpstream kept(const std::string &name) {
    NextUpstream next;
    for (const auto &server : upstreams.all()) {
      if (server->name() == name) next.kept = server.get();
    }
    return next;
  }
  template <class... Next>
  void exchange(Next... next) {
    std::vector<NextUpstream> list;
    (list.push_back(std::move(next)), ...);
    reload.exchange_upstreams(std::move(list));
  }
  // Adds servers with these names. Each server is ready and has a tool "t", and both clients have
  // listed its tools.
  void begin_with(const Texts &servers) {
    std::vector<NextUpstream> list;
    for (const std::string &server : servers) list.push_back(added(server));
    reload.exchange_upstreams(std::move(list));
    for (const std::string &server : servers) connects(server);
    turn();
    show_lists();
    status_changes = 0;
  }
  void connects(const std::string &connection, const std::string &tools = R"([{"name":"t"}])") {
    WireWorld::connects(fakes[connection], tools);
  }
  void show_lists() {
    for (Session *s : {&first, &second}) {
      s->listed = 1u << static_cast<unsigned>(ItemKind::tool);
      views.mark_shown(*s->view);
    }
    client.sent.clear();
  }
  Lane &lane_of(const std::string &server) {
    REQUIRE(upstreams.find(server) != nullptr);
    return *upstreams.find(server)->lanes().at(0);
  }
  std::uint64_t call_at(Session &s, const std::string &server, const std::string &id_token) {
    return call(s, lane_of(server), fakes[server], id_token);
  }
  void finishes(const std::string &connection, std::uint64_t number) {
    sends(fakes[connection],
          R"({"jsonrpc":"2.0","id":)" + std::to_string(number) + R"(,"result":{}})");
  }
  // Keeps every policy decision pending until the test calls decide().
  void leave_undecided() {
    policy.needs = BH_POLICY_DECIDES;
    policy.decides = BH_PENDING;
    gate.use(&policy_table, &policy);
  }
  void turn() { loop->poll(0); }
  std::string listed() {
    return std::string(views.catalogue(*first.view).page(ItemKind::tool, 0, 99)->items);
  }
  Texts names_listed() {
    Texts out;
    std::string text = listed();
    for (std::size_t at = 0; (at = text.find("\"name\":\"", at)) != std::string::npos;) {
      at += 8;
      out.push_back(text.substr(at, text.find('"', at) - at));
    }
    return out;
  }
  Texts in_order() const {
    Texts out;
    for (const auto &server : upstreams.all()) out.push_back(server->name());
    return out;
  }
  // Subscribes the client, and makes the server accept the subscription.
  void subscribes(Session &s, const std::string &server, const std::string &uri) {
    Call &call = *table.open();
    call.session = &s;
    call.method = mcp::Method::resources_subscribe;
    call.name = uri;
    const bool on = subscriptions.begin(call, lane_of(server), "\"" + uri + "\"");
    if (!on) subscriptions.ended(call, BH_OUTCOME_OK);
    table.close(call);
  }
  void grant(const std::string &server, bool any_arguments) {
    ApprovalQuestion question;
    question.id = server;
    question.server = server;
    ApprovalScope scope;
    scope.kind = ApprovalScope::Kind::session;
    scope.tool = any_arguments;
    desk.grant(question, scope);
  }
  Texts granted() {
    Texts out;
    for (const ApprovalGrant &one : desk.list(0).grants) out.push_back(one.question.server);
    return out;
  }
  std::string error_of(const Session &s) const {
    std::string scratch;
    const Texts answers_to = sent_to(s, BH_OUT_ANSWER);
    if (answers_to.size() != 1) return std::to_string(answers_to.size()) + " answers";
    return std::string(
        mcp::unquote(mcp::member(mcp::member(answers_to[0], "error"), "message"), &scratch));
  }
};

const std::string tools_changed =
    R"({"jsonrpc":"2.0","method":"notifications/tools/list_changed"})";

}  // namespace

TEST_CASE("servers are kept, added, changed and removed in one reload") {
  ReloadWorld w;
  w.begin_with({"kept1", "gone1", "changed1", "kept2", "gone2", "changed2"});
  const Lane *const kept1 = &w.lane_of("kept1"), *const kept2 = &w.lane_of("kept2");
  w.exchange(w.added("new1"), w.changed("changed1 again", "changed1"), w.kept("kept2"),
             w.changed("changed2 again", "changed2"), w.kept("kept1"), w.added("new2"));
  CHECK(w.in_order() == Texts{"new1", "changed1", "kept2", "changed2", "kept1", "new2"});
  CHECK(w.status_changes == 1);
  for (const char *name : {"kept1", "kept2"}) {
    CHECK(w.fakes[name].opened.size() == 1);
    CHECK(w.fakes[name].closed == 0);
  }
  CHECK(&w.lane_of("kept1") == kept1);
  CHECK(&w.lane_of("kept2") == kept2);
  // A changed server shows its previous list until the new list has arrived. A removed server shows
  // no list.
  CHECK(w.names_listed() == Texts{"changed1__t", "kept2__t", "changed2__t", "kept1__t"});
  CHECK(w.draining_servers.size() == 4);
  w.turn();
  CHECK(w.draining_servers.size() == 0);
  CHECK(w.drained_servers == 1);
  for (const char *name : {"gone1", "gone2", "changed1", "changed2"}) {
    CHECK(w.fakes[name].closed == 1);
  }
  w.client.sent.clear();
  for (const char *name : {"new1", "new2", "changed1 again", "changed2 again"}) {
    REQUIRE(w.fakes[name].opened.size() == 1);
    w.connects(name, R"([{"name":"u"}])");
  }
  CHECK(w.names_listed() ==
        Texts{"new1__u", "changed1__u", "kept2__t", "changed2__u", "kept1__t", "new2__u"});
  w.turn();
  CHECK(w.sent_to(w.first, BH_OUT_EVENT) == Texts{tools_changed});
  CHECK(w.sent_to(w.second, BH_OUT_EVENT) == Texts{tools_changed});
  CHECK(w.client.ended.empty());
}

TEST_CASE("a reload with the same servers has no effect") {
  ReloadWorld w;
  w.begin_with({"a", "b"});
  const std::uint64_t number = w.call_at(w.first, "a", "1");
  w.exchange(w.kept("a"), w.kept("b"));
  w.turn();
  CHECK(w.sent_to(w.first, BH_OUT_EVENT).empty());
  CHECK(w.draining_servers.size() == 0);
  CHECK(w.drained_servers == 0);
  w.finishes("a", number);
  CHECK(w.sent_to(w.first, BH_OUT_ANSWER) == Texts{R"({"jsonrpc":"2.0","id":1,"result":{}})"});
}

TEST_CASE("a removed server is closed after its last call") {
  ReloadWorld w;
  w.begin_with({"a", "b", "c"});
  const std::uint64_t one = w.call_at(w.first, "a", "1"), two = w.call_at(w.second, "a", "2");
  const std::uint64_t three = w.call_at(w.first, "b", "3");
  w.exchange(w.kept("c"));
  CHECK(w.names_listed() == Texts{"c__t"});
  w.turn();
  CHECK(w.draining_servers.size() == 2);
  w.finishes("a", one);
  w.finishes("b", three);
  w.turn();
  CHECK(w.fakes["a"].closed == 0);
  CHECK(w.fakes["b"].closed == 1);
  CHECK(w.drained_servers == 1);
  w.finishes("a", two);
  w.turn();
  CHECK(w.fakes["a"].closed == 1);
  CHECK(w.drained_servers == 2);
  CHECK(w.status_changes == 3);
  CHECK(w.sent_to(w.first, BH_OUT_ANSWER).size() == 2);
  CHECK(w.sent_to(w.second, BH_OUT_ANSWER) == Texts{R"({"jsonrpc":"2.0","id":2,"result":{}})"});
}

TEST_CASE(
    "a call that exceeds the drain limit of a removed server fails, and its server is notified") {
  ReloadWorld w;
  w.begin_with({"a", "b"});
  const std::uint64_t sent = w.call_at(w.first, "a", "1");
  w.profile.limits.drain_ms = 0;
  w.leave_undecided();
  CHECK(w.call_at(w.second, "b", "2") == 0);  // the call waits for the policy
  w.exchange();
  CHECK(wait_for(*w.loop, [&] { return w.draining_servers.size() == 0; }));
  CHECK(w.error_of(w.first) ==
        "tool call failed: server \"a\" was removed or changed by a reload while this request was "
        "in flight; the request may have run");
  CHECK(w.error_of(w.second) ==
        "tool call failed: server \"b\" was removed or changed by a reload while this request was "
        "in flight; the request has not run");
  REQUIRE_FALSE(w.fakes["a"].notifications.empty());
  CHECK(mcp::member(mcp::member(w.fakes["a"].notifications.back(), "params"), "requestId") ==
        std::to_string(sent));
  CHECK(mcp::member(w.fakes["b"].notifications.back(), "method") ==
        "\"notifications/initialized\"");
}

TEST_CASE("calls that have not been sent to a lane fail when the lane is closed") {
  ReloadWorld w;
  w.begin_with({"a", "b"});
  w.leave_undecided();
  w.call_at(w.first, "a", "1");
  w.call_at(w.second, "b", "2");
  REQUIRE(w.table.size() == 2);
  w.reload.lane_goes(w.lane_of("a"));
  CHECK(w.error_of(w.first) ==
        "tool call failed: server \"a\" was removed before the call was sent; the "
        "call has not run");
  CHECK(w.sent_to(w.second, BH_OUT_ANSWER).empty());
  CHECK(w.table.size() == 1);
  w.ends.end_all();
}

TEST_CASE("queued calls to a changed server stay with their old connection") {
  ReloadWorld w;
  ServerDef def = server_named("a");
  def.max_in_flight = 1;
  w.exchange(w.added("a", def));
  w.connects("a");
  const std::uint64_t one = w.call_at(w.first, "a", "1");
  CHECK(w.call_at(w.second, "a", "2") == 0);
  w.exchange(w.changed("a again", "a"));
  w.connects("a again");
  const std::uint64_t three = w.call(w.first, w.lane_of("a"), w.fakes["a again"], "3");
  CHECK(three != 0);
  CHECK(w.draining_servers.size() == 1);
  w.finishes("a", one);  // the queued call is sent
  const std::string two = w.fakes["a"].number_of("tools/call");
  REQUIRE(two != std::to_string(one));
  w.finishes("a", std::stoull(two));
  w.finishes("a again", three);
  w.turn();
  CHECK(w.draining_servers.size() == 0);
  CHECK(w.sent_to(w.first, BH_OUT_ANSWER).size() == 2);
  CHECK(w.sent_to(w.second, BH_OUT_ANSWER) == Texts{R"({"jsonrpc":"2.0","id":2,"result":{}})"});
}

TEST_CASE(
    "subscriptions move to the replacement of their server and are removed with a removed server") {
  ReloadWorld w;
  w.begin_with({"a", "b", "c"});
  w.subscribes(w.first, "a", "n:///1");
  w.subscribes(w.second, "a", "n:///1");
  w.subscribes(w.second, "b", "n:///2");
  w.subscribes(w.second, "c", "n:///3");
  w.exchange(w.changed("a again", "a"), w.kept("c"));
  w.turn();
  CHECK(w.first.subscriptions.size() == 1);
  CHECK(w.second.subscriptions.size() == 2);
  CHECK_FALSE(w.second.subscriptions.contains("\"n:///2\""));
  // The connection to "b" is closed, so no unsubscribe request is sent.
  CHECK(w.fakes["b"].number_of("resources/unsubscribe").empty());
  CHECK(w.fakes["c"].number_of("resources/subscribe").empty());  // this server is unchanged
  w.connects("a again");
  Texts subscribed;
  for (const std::string &request : w.fakes["a again"].requests) {
    if (mcp::member(request, "method") == "\"resources/subscribe\"") subscribed.push_back(request);
  }
  REQUIRE(subscribed.size() == 1);
  CHECK(mcp::member(mcp::member(subscribed[0], "params"), "uri") == "\"n:///1\"");
  w.client.sent.clear();
  w.sends(w.fakes["a again"], R"({"jsonrpc":"2.0","method":"notifications/resources/updated",)"
                              R"("params":{"uri":"n:///1"}})");
  CHECK(w.sent_to(w.first, BH_OUT_EVENT).size() == 1);
  CHECK(w.sent_to(w.second, BH_OUT_EVENT).size() == 1);
}

TEST_CASE(
    "a new definition that does not require a new connection is applied to the existing server") {
  ReloadWorld w;
  ServerDef def = server_named("a");
  def.max_in_flight = 1;
  w.exchange(w.added("a", def), w.added("b"));
  w.connects("a", R"([{"name":"t"},{"name":"u"}])");
  w.connects("b");
  w.call_at(w.first, "a", "1");
  CHECK(w.call_at(w.second, "a", "2") == 0);
  def.max_in_flight = 3;
  def.deny_tools = {"u"};
  NextUpstream next = w.kept("a");
  next.redefined = def;
  w.exchange(std::move(next), w.kept("b"));
  CHECK(w.fakes["a"].opened.size() == 1);
  CHECK(w.lane_of("a").in_flight == 3);  // two calls, and the list that is requested again
  CHECK(w.names_listed() == Texts{"a__t", "b__t"});
  CHECK(w.upstreams.find("a")->def().deny_tools == Texts{"u"});
  w.ends.end_all();
}

TEST_CASE("approvals are removed with the server for which they were given") {
  ReloadWorld w;
  w.begin_with({"kept", "changed", "gone"});
  for (const char *server : {"kept", "changed", "gone"}) w.grant(server, true);
  w.exchange(w.kept("kept"), w.changed("changed again", "changed"));
  CHECK(w.granted() == Texts{"kept"});
}

TEST_CASE("servers are not exchanged during shutdown") {
  ReloadWorld w;
  w.begin_with({"a", "b"});
  w.draining_servers.end_all();
  w.exchange(w.added("c"));
  CHECK(w.in_order() == Texts{"a", "b"});
  CHECK(w.fakes["c"].opened.empty());
  CHECK(w.status_changes == 0);
}

TEST_CASE("changed names are announced to clients that have requested a list") {
  ReloadWorld w;
  w.begin_with({"a", "b"});
  w.second.listed = 0;
  w.profile.naming.separator = "-";
  CHECK(w.names_listed() == Texts{"a__t", "b__t"});
  w.reload.profile_changed();
  CHECK(w.names_listed() == Texts{"a-t", "b-t"});
  CHECK(w.names.naming().separator == "-");
  w.turn();
  CHECK(w.sent_to(w.first, BH_OUT_EVENT) == Texts{tools_changed});
  CHECK(w.sent_to(w.second, BH_OUT_EVENT).empty());
  CHECK(w.fakes["a"].opened.size() == 1);
}

TEST_CASE("changed rules apply to pending calls, subscriptions, approvals and lists") {
  ReloadWorld w;
  w.begin_with({"a", "b"});
  w.subscribes(w.first, "a", "n:///1");
  w.subscribes(w.second, "b", "n:///2");
  w.grant("a", true);
  w.grant("b", false);
  w.leave_undecided();
  w.call_at(w.first, "a", "1");
  w.id = w.first.open_calls.head->id;
  w.policy.decides = BH_OK;
  w.policy.verdict = BH_VERDICT_BLOCK;
  bool announced = true;
  SECTION("lists are announced") {}
  SECTION("the profile announces no lists") {
    w.profile.expose.list_changed = announced = false;
  }
  w.reload.policy_changed();
  CHECK(w.sent_to(w.first, BH_OUT_EVENT) == Texts(announced ? 1 : 0, tools_changed));
  CHECK(w.sent_to(w.second, BH_OUT_EVENT) == Texts(announced ? 1 : 0, tools_changed));
  CHECK(w.first.subscriptions.empty());
  CHECK(w.second.subscriptions.empty());
  CHECK_FALSE(w.fakes["b"].number_of("resources/unsubscribe").empty());
  CHECK(w.granted() == Texts{"b"});  // the grant for "b" covers only the same arguments
  w.decide(allow());                 // a late decision, based on the previous rules
  CHECK(w.error_of(w.first) == "MCP request blocked by policy (rule)");
  CHECK(w.fakes["a"].number_of("tools/call").empty());
}

TEST_CASE("changed pins are announced if they change which tools may be called") {
  ReloadWorld w;
  w.profile.pins.mode = PinRules::Mode::enforce;
  w.pins.use_profile({});
  w.begin_with({"a", "b"});
  const auto announced = [&] {
    const std::size_t n = w.sent_to(w.first, BH_OUT_EVENT).size();
    w.client.sent.clear();
    return n;
  };
  w.reload.use_pins();
  CHECK(announced() == 0);  // the pins have not changed
  ToolPin approved;
  approved.server = "a";
  approved.tool = "t";
  approved.hash = "another definition";
  w.profile.pinned = {approved};
  SECTION("other rules") {
    w.profile.pins.accept_new = true;
  }
  SECTION("no rules") {
    w.profile.pins.mode = PinRules::Mode::off;
  }
  w.reload.use_pins();
  CHECK(announced() == 1);
  w.reload.use_pins();
  CHECK(announced() == 0);
}

TEST_CASE("enabling pins approves the definitions that servers currently list") {
  ReloadWorld w;
  w.profile.pins.mode = PinRules::Mode::off;
  w.pins.use_profile({});
  w.begin_with({"a", "b"});
  const auto state = [&](const char *server) {
    const Lane &lane = w.lane_of(server);
    return w.pins.state(lane, ItemKind::tool, "t", lane.items(ItemKind::tool).items.at(0).hash);
  };
  CHECK(state("a") == BH_PIN_UNKNOWN);
  w.profile.pins.mode = PinRules::Mode::enforce;
  w.reload.use_pins();
  CHECK(state("a") == BH_PIN_SAME);
  CHECK(state("b") == BH_PIN_SAME);
}
