// Tests views: the lanes that a client sees, parked requests, and changed lists.
#include "route/views.hpp"

#include <catch2/catch.hpp>

#include "route/list_world.hpp"
#include "route/request_scopes.hpp"

using namespace bulkhead;

namespace {

using Texts = std::vector<std::string>;

void wait(ListWorld &w, Session &s, const std::string &id) {
  Request request(s, R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":"tools/list"})");
  w.views.wait(*s.view, request.incoming);
}

std::size_t changes_told(const ListWorld &w, const Session &s,
                         const std::string &member = "tools") {
  std::size_t told = 0;
  for (const FakeClient::Sent &sent : w.client.sent) {
    const std::string method = "notifications/" + member + "/list_changed";
    const bool list = sent.text.find(method) != std::string::npos;
    told += list && sent.session == s.handle ? 1 : 0;
  }
  return told;
}

}  // namespace

TEST_CASE("clients with the same capabilities share a view") {
  ListWorld w;
  w.add("a", "[]");
  const Session &one = w.joined(), &two = w.joined(cap::roots), &three = w.joined(cap::sampling);
  CHECK(one.view == two.view);  // servers that clients share do not receive the roots capability
  CHECK(one.view != three.view);
  CHECK(one.view->clients.size() == 2);
  // A tools plugin sends no requests to clients, so capabilities do not matter.
  CHECK(one.view->lanes == three.view->lanes);
}

TEST_CASE(
    "if a server has roots per client, each client with roots gets its own view, also after a "
    "reload") {
  ListWorld w;
  w.add("a", "[]");
  Session &before = w.joined(cap::roots), &plain = w.joined(), &other = w.joined();
  CHECK(before.view == plain.view);
  ServerDef def = server_named("b");
  def.roots = RootsMode::per_client;
  w.upstreams.add(std::make_unique<Upstream>(w, def));
  w.views.exchange({}, [] {});
  CHECK(before.view != plain.view);
  CHECK(before.view->session == before.handle);
  CHECK(plain.view == other.view);
  CHECK(plain.view->session == 0);
  const Session &one = w.joined(cap::roots), &two = w.joined(cap::roots), &three = w.joined();
  CHECK(one.view != two.view);
  CHECK(one.view->caps == cap::roots);
  CHECK(three.view == plain.view);
}

TEST_CASE("a view without clients is removed after a delay, together with its lanes") {
  ListWorld w;
  w.add("a", "[]");
  w.profile.limits.idle_view_ms = 1;
  Session &s = w.joined();
  w.views.leave(s);
  CHECK(s.view == nullptr);
  CHECK(w.going.empty());
  CHECK(wait_for(*w.loop, [&] { return w.going.size() == 1; }));
  CHECK(w.count("ends") == 1);
}

TEST_CASE("requests wait until every server has responded or failed") {
  ListWorld w;
  w.add("a", "[]");
  w.add("b", "");
  Session &s = w.joined();
  CHECK_FALSE(Views::is_ready(*s.view));
  s.process_name = "then";
  wait(w, s, "1");
  wait(w, s, "2");
  s.process_name = "now";
  CHECK(w.views.anybody_waits());
  Texts process_names;
  w.handle = [&](Session &session, Incoming &) { process_names.push_back(session.process_name); };
  SECTION("responded") {
    w.lists("b", "[]");
  }
  SECTION("failed") {
    w.plugins["b"].listing = BH_E_UNAVAILABLE;
    static_cast<ToolsLane &>(*s.view->lanes[1]).list_changed(ItemKind::tool);
  }
  CHECK(w.handled == Texts{"1", "2"});
  CHECK(process_names == Texts{"then", "then"});
  CHECK(s.process_name == "now");
  CHECK_FALSE(w.views.anybody_waits());
}

TEST_CASE("requests wait at most for the time that the profile allows") {
  ListWorld w;
  w.profile.limits.first_list_wait_ms = 1;
  w.add("b", "");
  Session &s = w.joined();
  wait(w, s, "1");
  CHECK(wait_for(*w.loop, [&] { return !w.handled.empty(); }));
  CHECK(Views::is_ready(*s.view));
  CHECK_FALSE(is_settled(*s.view));
}

TEST_CASE("parked requests are limited in number for each client and in bytes") {
  ListWorld w;
  w.add("b", "");
  Session &s = w.joined();
  SECTION("number") {
    w.profile.limits.in_flight_per_session = 2;
    for (const char *id : {"1", "2", "3"}) wait(w, s, id);
    Session &other = w.joined();
    wait(w, other, "4");
    CHECK(s.view->waiters.size() == 3);
  }
  SECTION("bytes") {
    w.profile.limits.message_bytes = 100;  // enough for two messages of about 46 bytes
    for (const char *id : {"1", "2", "3"}) wait(w, s, id);
    CHECK(s.view->waiters.size() == 2);
  }
  REQUIRE(w.client.sent.size() == 1);
  CHECK(mcp::member(w.client.sent[0].text, "id") == "3");
  CHECK(mcp::member(mcp::member(w.client.sent[0].text, "error"), "code") == "-32000");
}

TEST_CASE("a parked request is removed when it is cancelled or its client disconnects") {
  ListWorld w;
  w.add("b", "");
  Session &s = w.joined(), &other = w.joined();
  wait(w, s, "1");
  wait(w, s, "2");
  wait(w, other, "1");
  CHECK_FALSE(w.views.cancel_waiting(s, "7").has_value());
  const auto reply = w.views.cancel_waiting(s, "1");
  REQUIRE(reply.has_value());
  CHECK(reply->session == s.handle);
  w.views.drop_waiters(s);
  REQUIRE(s.view->waiters.size() == 1);
  w.lists("b", "[]");
  CHECK(w.handled == Texts{"1"});
}

TEST_CASE("if a session ends while its parked requests are handled, the rest are dropped") {
  ListWorld w;
  w.add("b", "");
  Session &s = w.joined();
  wait(w, s, "1");
  wait(w, s, "2");
  w.handle = [&](Session &session, Incoming &) {
    w.views.leave(session);
    w.sessions.erase(session.handle);
  };
  w.lists("b", "[]");
  CHECK(w.handled == Texts{"1"});
}

TEST_CASE("a changed list is announced once, to clients that have seen it") {
  ListWorld w;
  w.add("a", R"([{"name":"x"}])");
  Session &seen = w.joined(), &unseen = w.joined();
  w.loop->poll(0);
  CHECK(w.views.catalogue(*seen.view).count(ItemKind::tool) == 1);
  w.views.mark_shown(*seen.view);
  seen.listed = 1u << static_cast<unsigned>(ItemKind::tool);
  const std::uint64_t version = w.views.catalogue(*seen.view).version();
  w.lists("a", R"([{"name":"x"},{"name":"y"}])");
  w.lists("a", R"([{"name":"x"},{"name":"z"}])");
  CHECK(changes_told(w, seen) == 0);  // deferred to a later iteration of the event loop
  w.loop->poll(0);
  CHECK(changes_told(w, seen) == 1);
  CHECK(changes_told(w, unseen) == 0);
  CHECK(w.views.catalogue(*seen.view).version() != version);
  SECTION("but not if the list is the same as before") {
    w.lists("a", R"([{"name":"x"},{"name":"z"}])");
  }
  SECTION("but not if the profile disables list_changed") {
    w.profile.expose.list_changed = false;
    w.lists("a", "[]");
  }
  w.loop->poll(0);
  CHECK(changes_told(w, seen) == 1);
}

TEST_CASE("a changed list of resource templates is announced as a change of resources") {
  const auto changes = [](ItemKind listed, const std::string &templates, const std::string &next) {
    ListWorld w;
    w.plugins["a"].templates = templates;
    w.add("a", R"([{"name":"x"}])");
    Session &s = w.joined();
    w.loop->poll(0);
    w.views.mark_shown(*s.view);
    s.listed = static_cast<std::uint8_t>(1u << static_cast<unsigned>(listed));
    w.plugins["a"].templates = next;
    auto &lane = static_cast<ToolsLane &>(*w.upstreams.find("a")->lanes()[0]);
    lane.list_changed(ItemKind::resource_template);
    w.loop->poll(0);
    CHECK(changes_told(w, s, "tools") == 0);
    return changes_told(w, s, "resources");
  };
  const std::string one = R"([{"uriTemplate":"a:{x}","name":"x"}])";
  const std::string two =
      R"([{"uriTemplate":"a:{x}","name":"x"},{"uriTemplate":"b:{y}","name":"y"}])";
  CHECK(changes(ItemKind::resource, one, two) == 1);
  CHECK(changes(ItemKind::resource_template, two, one) == 1);
  CHECK(changes(ItemKind::resource_template, one, one) == 0);
  CHECK(changes(ItemKind::tool, one, two) == 0);
}

TEST_CASE("a removed server leaves every view immediately; a new server is in profile order") {
  ListWorld w;
  w.add("a", R"([{"name":"x"}])");
  w.add("b", R"([{"name":"y"}])");
  const Session &s = w.joined();
  REQUIRE(s.view->lanes.size() == 2);
  Upstreams::List all = w.upstreams.take_all(), gone;
  gone.push_back(std::move(all[0]));
  w.upstreams.add(w.made(server_named("c"), R"([{"name":"z"}])"));
  w.upstreams.add(std::move(all[1]));
  bool moved = false;
  w.views.exchange(gone, [&] {
    moved = true;
    CHECK(s.view->lanes.size() == 2);
  });
  CHECK(moved);
  CHECK(gone[0]->lanes()[0]->draining());
  CHECK(gone[0]->lanes()[0]->views.empty());
  REQUIRE(s.view->lanes.size() == 2);
  CHECK(s.view->lanes[0]->upstream().name() == "c");
  CHECK(s.view->lanes[1]->upstream().name() == "b");
  const std::string names = w.names_of(&w.views.catalogue(*s.view));
  CHECK(names.find("c__z") != std::string::npos);
  CHECK(names.find("a__x") == std::string::npos);
  for (auto &upstream : gone) upstream->remove(upstream->lanes()[0].get());
}

TEST_CASE("a view is found by its key, without a look at views with other keys") {
  ViewTable table;
  for (std::uint64_t key = 1; key <= 1'000; ++key) table.add(key).caps = cap::roots;
  const View &plain = table.add(7);
  std::size_t examined = 0;
  const auto find = [&](std::uint64_t key, ClientCaps caps) {
    examined = 0;
    return table.find(key, [&](const View &view) {
      ++examined;
      return view.caps == caps;
    });
  };
  CHECK(find(7, 0) == &plain);
  CHECK(examined <= 2);
  CHECK(find(7, cap::roots) == &table[6]);
  CHECK(find(7, cap::sampling) == nullptr);
  CHECK(examined == 2);
  CHECK(find(1'001, 0) == nullptr);
  CHECK(examined == 0);
  std::size_t own = 0;
  table.for_each(7, [&own](View &) { ++own; });
  CHECK(own == 2);
  table.erase(plain);
  CHECK(find(7, 0) == nullptr);
  CHECK(find(7, cap::roots) == &table[6]);
  CHECK(table.size() == 1'000);
}

TEST_CASE(
    "the views of a connection's requests are removed when it has ended and they are unused") {
  ListWorld w;
  w.add("a", "[]");
  ServerDef def = server_named("b");
  def.session = SessionScope::per_client;
  w.upstreams.add(std::make_unique<Upstream>(w, def));
  const auto request_of = [&w](std::uint64_t connection, ClientCaps caps) -> Session & {
    Session &s = open_session(w.sessions, w.client);
    s.sessionless = Session::Sessionless::waits;
    s.scope = RequestScopes::of(connection);
    s.caps = caps;
    w.views.join(s);
    return s;
  };
  const auto views = [&w] {
    std::size_t count = 0;
    w.views.for_each([&count](View &) { ++count; });
    return count;
  };
  Session &one = request_of(1, 0), &sampling = request_of(1, cap::sampling),
          &other = request_of(2, 0);
  CHECK(one.view != sampling.view);
  CHECK(one.view != other.view);
  CHECK(request_of(1, 0).view == one.view);
  w.views.leave(sampling);
  w.views.leave(other);
  CHECK(views() == 3);
  w.views.end_scope(RequestScopes::of(1));
  CHECK(views() == 2);  // `one` uses its view, and the other connection is open
  while (!one.view->clients.empty()) {
    Session &last = *one.view->clients.back();
    w.views.leave(last);
    if (&last == &one) break;
  }
  CHECK(views() == 1);
  w.views.end_scope(RequestScopes::of(2));
  CHECK(views() == 0);
}
