// Tests responses to list requests, with pagination.
#include "route/list_requests.hpp"

#include <catch2/catch.hpp>

#include "route/list_world.hpp"
#include "route/stateless_form.hpp"

using namespace bulkhead;

namespace {

struct World : ListWorld {
  std::uint32_t first_times = 0;
  ListRequests lists_of{77,
                        {sessions, views, names, profile, recorder, answers,
                         [this](const Session &) { ++first_times; }}};
  Session *session = nullptr;
  const ResultForm *form = nullptr;

  std::string_view ask(const std::string &params = "{}", ItemKind kind = ItemKind::tool) {
    client.sent.clear();
    Request request(*session,
                    R"({"jsonrpc":"2.0","id":"q","method":"tools/list","params":)" + params + "}");
    request.incoming.reply.form = form;
    lists_of.answer(*session, request.incoming, kind);
    return client.sent.empty() ? std::string_view() : client.sent[0].text;
  }
};

std::string_view at(std::string_view text, std::initializer_list<std::string_view> path) {
  for (const std::string_view name : path) text = mcp::member(text, name);
  return text;
}

}  // namespace

TEST_CASE("a list is sent page by page, with each item once") {
  World w;
  w.profile.limits.page_items = 2;
  w.add("a", R"([{"name":"1"},{"name":"2"},{"name":"3"}])");
  w.session = &w.joined();
  std::string all, cursor;
  int pages = 0;
  for (;; ++pages) {
    const std::string_view answer = w.ask(cursor.empty() ? "{}" : R"({"cursor":)" + cursor + "}");
    REQUIRE(mcp::valid_json(answer));
    CHECK(at(answer, {"id"}) == "\"q\"");
    all += at(answer, {"result", "tools"});
    cursor = at(answer, {"result", "nextCursor"});
    if (cursor.empty()) break;
    REQUIRE(pages < 5);
  }
  CHECK(pages == 1);
  for (const char *name : {"a__1", "a__2", "a__3"}) CHECK(all.find(name) != std::string::npos);
  CHECK(w.session->listed == 1u << static_cast<unsigned>(ItemKind::tool));
  CHECK(w.first_times == 1);
}

TEST_CASE("the hints of a list are those of all its servers together") {
  World w;
  Upstream &first = w.add("a", "[]"), &second = w.add("b", "[]");
  w.session = &w.joined();
  StatelessForm form(true);
  form.set_server_info(R"({"name":"g"})");
  w.form = &form;
  CHECK(at(w.ask(), {"result", "ttlMs"}) == "0");  // tools plugins
  View &view = *w.session->view;
  FakeLane a(w, first, 0, 0), b(w, second, 0, 0);
  for (FakeLane *lane : {&a, &b}) lane->list(ItemKind::tool, R"({"tools":[{"name":"1"}]})");
  const std::vector<Lane *> former = std::exchange(view.lanes, {&a, &b});
  view.catalogue = nullptr;
  const auto hints = [&](const std::string &params = "{}", ItemKind kind = ItemKind::tool) {
    const std::string_view answer = w.ask(params, kind);
    REQUIRE(mcp::valid_json(answer));
    return std::string(at(answer, {"result", "ttlMs"})) + " " +
           std::string(at(answer, {"result", "cacheScope"}));
  };
  a.hints = ListHints{9'000, true};
  b.hints = ListHints{5'000, true};
  CHECK(hints() == R"(5000 "public")");
  CHECK(a.refreshes == 1);
  CHECK(b.refreshes == 1);
  b.hints = std::nullopt;  // it has no such list
  CHECK(hints() == R"(9000 "public")");
  b.hints = ListHints{5'000, false};
  CHECK(hints() == R"(5000 "private")");
  b.hints = ListHints{};
  CHECK(hints() == R"(0 "private")");
  a.hints = b.hints = std::nullopt;
  CHECK(hints() == R"(0 "private")");
  // The pages after the first one do not cause another request to the server.
  a.hints = b.hints = ListHints{5'000, true};
  const int before = a.refreshes;
  w.profile.limits.page_items = 1;
  const std::string cursor(at(w.ask(), {"result", "nextCursor"}));
  CHECK(hints(R"({"cursor":)" + cursor + "}") == R"(5000 "public")");
  CHECK(a.refreshes == before + 1);
  // With a policy that filters lists, each principal has a list of its own.
  w.gate.use(&policy_table, &w.policy);
  w.views.rules_changed();
  CHECK(hints() == R"(5000 "private")");
  view.lanes = former;
}

TEST_CASE("an invalid cursor or a cursor for another list is rejected") {
  World w;
  w.profile.limits.page_items = 1;
  w.add("a", R"([{"name":"1"},{"name":"2"}])");
  w.session = &w.joined();
  const std::string cursor(at(w.ask(), {"result", "nextCursor"}));
  REQUIRE_FALSE(cursor.empty());
  CHECK(at(w.ask(R"({"cursor":"nonsense"})"), {"error", "code"}) == "-32602");
  CHECK(at(w.ask(R"({"cursor":)" + cursor + "}", ItemKind::prompt), {"error", "code"}) == "-32602");
  w.lists("a", R"([{"name":"1"},{"name":"3"}])");
  CHECK(at(w.ask(R"({"cursor":)" + cursor + "}"), {"error", "code"}) == "-32602");
}

TEST_CASE("a cursor is valid neither in another view nor for another principal's list") {
  World w;
  w.profile.limits.page_items = 1;
  w.add("a", R"([{"name":"1"},{"name":"2"}])");
  Session &one = w.joined(), &two = w.joined();
  Session *other = &two;
  SECTION("another view") {
    other = &w.joined(cap::sampling);
    REQUIRE(other->view != one.view);
  }
  SECTION("another principal's list") {
    w.gate.use(&policy_table, &w.policy);
    w.views.rules_changed();
    one.principal = "one";
    two.principal = "two";
  }
  w.session = &one;
  const std::string cursor(at(w.ask(), {"result", "nextCursor"}));
  REQUIRE_FALSE(cursor.empty());
  w.session = other;
  CHECK_FALSE(at(w.ask(), {"result", "nextCursor"}).empty());
  CHECK(at(w.ask(R"({"cursor":)" + cursor + "}"), {"error", "code"}) == "-32602");
  w.session = &one;
  CHECK(at(w.ask(R"({"cursor":)" + cursor + "}"), {"result", "tools"}).find("a__2") !=
        std::string_view::npos);
}

TEST_CASE("a page does not exceed the message size of the client's transport") {
  World w;
  const std::string text(600, 'd');
  w.add("a", R"([{"name":"1","description":")" + text + R"("},{"name":"2","description":")" + text +
                 R"("},{"name":"3"}])");
  w.session = &w.joined();
  w.session->max_message_bytes = 1'400;
  const std::string_view answer = w.ask();
  CHECK(answer.size() <= 1'400);
  CHECK_FALSE(at(answer, {"result", "nextCursor"}).empty());
}

TEST_CASE("a request for a list that is not known yet is parked") {
  World w;
  w.add("a", "");
  w.session = &w.joined();
  CHECK(w.ask().empty());
  CHECK(w.session->view->waiters.size() == 1);
  std::string items;
  CHECK(w.lists_of.items(w.session->handle, &w.client, ItemKind::tool, &items) == BH_WOULD_BLOCK);
}

TEST_CASE("items for plugins contain both names and the profile's settings") {
  World w;
  ServerDef def = server_named("a");
  def.tool_timeouts_ms["x"] = 700;
  w.upstreams.add(w.made(def, R"([{"name":"x"},{"name":"y"}])"));
  w.session = &w.joined();
  std::string items;
  REQUIRE(w.lists_of.items(w.session->handle, &w.client, ItemKind::tool, &items) == BH_OK);
  CHECK(mcp::valid_json(items));
  CHECK(items.find(R"({"server":"a","name":"a__x","original_name":"x","timeout_ms":700,)") !=
        std::string::npos);
  FakeClient other;
  CHECK(w.lists_of.items(w.session->handle, &other, ItemKind::tool, &items) == BH_STALE);
  CHECK(w.lists_of.items(12345, &w.client, ItemKind::tool, &items) == BH_STALE);
  w.profile.expose.tools = false;
  REQUIRE(w.lists_of.items(w.session->handle, &w.client, ItemKind::tool, &items) == BH_OK);
  CHECK(items == "[]");
}

TEST_CASE("an output schema that is not an object is listed only to clients of 2026-07-28") {
  World w;
  w.add("a", R"([{"name":"1","outputSchema":{"type":"array"}}])");
  w.add("b", R"([{"name":"2","outputSchema":{"type":"object"}},{"outputSchema":7,"name":"3"}])");
  w.session = &w.joined();
  CHECK(at(w.ask(), {"result", "tools"}) ==
        R"([{"name":"a__1"},{"name":"b__2","outputSchema":{"type":"object"}},{"name":"b__3"}])");
  StatelessForm form(true);
  form.set_server_info(R"({"name":"g"})");
  w.form = &form;
  CHECK(at(w.ask(), {"result", "tools"}) ==
        R"([{"name":"a__1","outputSchema":{"type":"array"}},)"
        R"({"name":"b__2","outputSchema":{"type":"object"}},{"outputSchema":7,"name":"b__3"}])");
}
