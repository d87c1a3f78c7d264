// Tests reading the lists of a server, without the lane that owns them.
#include "route/server_lists.hpp"

#include "route/lane_part_fakes.hpp"

using namespace bulkhead;

namespace {

constexpr auto tool = ItemKind::tool;
using Texts = std::vector<std::string>;

struct Parts : LaneParts, ServerLists::Owner {
  std::array<ItemList, item_kinds> items;
  ServerLists lists{lane, *this, items, conversation, wire, *this};
  int ready = 0, reads = 0;
  Texts failed{};  // "again: reason"; "last: reason"
  std::uint32_t waits = 0;

  Parts() {
    lane.connection = 1;
    ServerCaps caps;
    caps.tools = true;
    lane.set_caps(caps);
    conversation.begin(session_server_edge(), "2025-11-25");
  }
  void become_ready() override { ++ready; }
  void tools_failed(const std::string &reason, bool once_more,
                    std::uint32_t retry_after_ms) override {
    failed.push_back((once_more ? "again: " : "last: ") + reason);
    waits = retry_after_ms;
  }
  void tools_read() override { ++reads; }

  void answer(const std::string &result) { respond(R"("result":)" + result); }
  void respond(const std::string &outcome) {
    end_own_exchange();
    const Scanned m(R"({"jsonrpc":"2.0","id":1,)" + outcome + "}");
    lists.answered(tool, &m.scan, m.text, nullptr, 7);
  }
  // Returns the names of the listed tools.
  Texts names() const {
    Texts out;
    const ItemList &list = items[static_cast<std::size_t>(tool)];
    for (const auto &item : list.items) {
      out.emplace_back(mcp::member(item.raw.in(list.bytes), "name"));
    }
    return out;
  }
};

}  // namespace

TEST_CASE("the pages of a list are read until a page has no new cursor") {
  struct Case {
    std::string about;
    Texts pages;
    Texts requests;  // params
    Texts names;
  };
  const std::vector<Case> cases = {
      {"no cursor", {R"({"tools":[{"name":"a"}]})"}, {""}, {R"("a")"}},
      {"two pages",
       {R"({"tools":[{"name":"a"}],"nextCursor":"2"})", R"({"tools":[{"name":"b"}]})"},
       {"", R"({"cursor":"2"})"},
       {R"("a")", R"("b")"}},
      {"the server ignores cursors",
       {R"({"tools":[{"name":"a"}],"nextCursor":"2"})",
        R"({"tools":[{"name":"a"}],"nextCursor":"2"})"},
       {"", R"({"cursor":"2"})"},
       {R"("a")"}},
  };
  for (const Case &c : cases) {
    INFO(c.about);
    Parts p;
    p.lists.start_all();
    for (const std::string &page : c.pages) p.answer(page);
    CHECK(p.wire.params_of("tools/list") == c.requests);
    CHECK(p.names() == c.names);
    CHECK(p.ready == 1);
    CHECK(p.reads == 1);
    CHECK(p.lists.known(tool));
  }
}

TEST_CASE("a failed first list of tools is requested again a limited number of times") {
  Parts p;
  p.lists.start_all();
  for (int i = 0; i < 6; ++i) {
    p.respond(R"("error":{"code":-1,"message":"busy"})");
    p.lists.start(tool);
  }
  REQUIRE(p.failed.size() == 6);
  CHECK(p.failed[4].starts_with("again: tools/list failed"));
  CHECK(p.failed[5].starts_with("last: tools/list failed"));
  CHECK(p.waits == 7);
  CHECK(p.ready == 0);
  CHECK(p.reads == 0);
}

TEST_CASE("a later list that cannot be read leaves the known tools listed") {
  Parts p;
  p.lists.start_all();
  p.answer(R"({"tools":[{"name":"a"}]})");
  p.lane.set_state(LaneState::ready);
  p.events.clear();
  p.lists.changed(tool);
  p.respond(R"("error":{"code":-1,"message":"busy"})");
  CHECK(p.failed.empty());
  CHECK(p.names() == Texts{R"("a")"});
  CHECK(p.events.empty());
  CHECK(p.reads == 2);
}

TEST_CASE("changes that are reported while a list is read cause exactly one more request") {
  Parts p;
  p.lists.start_all();
  p.answer(R"({"tools":[{"name":"a"}]})");
  p.lane.set_state(LaneState::ready);
  p.lists.changed(tool);
  p.lists.changed(tool);
  p.lists.changed(tool);
  CHECK(p.wire.params_of("tools/list").size() == 2);
  p.answer(R"({"tools":[{"name":"b"}]})");
  CHECK(p.wire.params_of("tools/list").size() == 3);
  CHECK(p.reads == 1);  // calls wait for the newest list
  p.answer(R"({"tools":[{"name":"b"}]})");
  CHECK(p.wire.params_of("tools/list").size() == 3);
  CHECK(p.reads == 2);
  CHECK(p.count("items") == 1);
}

TEST_CASE("no list is read while there is no connection") {
  Parts p;
  p.lane.set_state(LaneState::waiting);
  p.lists.changed(tool);
  CHECK(p.wire.sent.empty());
}

TEST_CASE("a server without lists is ready immediately") {
  Parts p;
  p.lane.set_caps({});
  p.lists.start_all();
  CHECK(p.ready == 1);
  CHECK(p.wire.sent.empty());
}
