// Tests session restoration: which parts of a ledger record are used, and when the state is
// restored.
#include "route/restored_sessions.hpp"

#include <catch2/catch.hpp>

#include "route/list_world.hpp"

using namespace bulkhead;

namespace {

using Texts = std::vector<std::string>;

constexpr std::string_view id = "session-id";

// A server with two resources. It lists them once `connected` is true.
struct Notes {
  bool connected = true;
};
const bh_tools notes_table = {
    sizeof(bh_tools),
    0,
    [](void *self, const bh_list_info *info, bh_buf *out, bh_error *) -> bh_status {
      const std::uint32_t kind = info->kind;
      if (!static_cast<Notes *>(self)->connected) return BH_PENDING;
      if (kind != BH_LIST_RESOURCES) return BH_E_UNSUPPORTED;
      *out = bh::buf(
          std::string(R"([{"uri":"note:///1","name":"a"},{"uri":"note:///2","name":"b"}])"));
      return BH_OK;
    },
    [](void *, bh_call, const bh_call_info *, bh_error *) -> bh_status { return BH_PENDING; },
    [](void *, bh_call, const bh_cancel *) {},
    [](void *) -> std::uint32_t { return BH_TOOLS_SUBSCRIBE; },
};

struct World : ListWorld {
  OwnedFd memory = *Ledger::make();
  std::unique_ptr<Ledger> ledger = Ledger::open(memory.get());
  SessionJournal journal{sessions, *loop, profile.limits};
  Notes notes;
  Texts subscribed;
  std::uint32_t idle = 0;
  RestoredSessions restored{
      {profile, *loop, names, sessions, journal, views, answers, recorder,
       [this](Session &, Incoming &request) {
         CHECK(request.recorded);
         CHECK(request.message.scan->method == mcp::Method::resources_subscribe);
         subscribed.emplace_back(request.message[request.message.scan->uri]);
       },
       [this](Session &, ClientCaps caps) { return caps & ~denied; }, [this] { ++idle; }}};
  ClientCaps denied = 0;
  Session &session = open_session(sessions, client);

  // Simulates a restart: opens the existing ledger in a new process.
  void next_process() {
    ledger = Ledger::open(memory.get());
    journal.use(ledger.get());
    answers.use_ledger(ledger.get());
  }
  void leave(LedgerRecord record) {
    record.id = id;
    ledger->write(ledger->claim(id), std::move(record));
    next_process();
  }
  void restore() { restored.restore(session.handle, newest_revision, cap::sampling, id, {}); }
  void add_notes() {
    auto upstream = std::make_unique<Upstream>(*this, server_named("notes"));
    upstream->tools = &notes_table;
    upstream->self = &notes;
    upstreams.add(std::move(upstream));
  }
  void connect_notes() {
    notes.connected = true;
    for (const auto &lane : upstreams.find("notes")->lanes()) {
      static_cast<ToolsLane &>(*lane).list_changed(ItemKind::resource);
    }
  }
  Texts told() const {
    Texts out;
    for (const FakeClient::Sent &sent : client.sent) {
      std::string scratch;
      out.emplace_back(mcp::unquote(mcp::member(sent.text, "method"), &scratch));
    }
    return out;
  }
};

const Texts all_lists = {"notifications/tools/list_changed", "notifications/resources/list_changed",
                         "notifications/prompts/list_changed"};

}  // namespace

TEST_CASE("only a new session can be restored, and only with a known revision") {
  World w;
  w.restored.restore(w.session.handle + 1'000, 0, 0, id, {});
  w.restored.restore(w.session.handle, revisions.size(), 0, id, {});
  CHECK_FALSE(w.session.initialized);
  CHECK(w.session.view == nullptr);
  w.restore();
  CHECK(w.session.initialized);
  CHECK(w.session.ready);
  CHECK(w.session.caps == cap::sampling);
  REQUIRE(w.session.view != nullptr);
  // Ignored: the session has already been restored.
  w.restored.restore(w.session.handle, 0, 0, id, {});
  CHECK(w.session.revision == newest_revision);
  CHECK(w.session.caps == cap::sampling);
  CHECK(w.session.view->clients.size() == 1);
}

TEST_CASE("a restored session uses only the capabilities that are admitted") {
  World w;
  w.denied = cap::sampling;
  w.restore();
  CHECK(w.session.initialized);
  CHECK(w.session.caps == 0);
  REQUIRE(w.session.view != nullptr);
  CHECK(w.session.view->caps == 0);
}

TEST_CASE(
    "after its servers have responded, a client receives list_changed for each list that it has") {
  World w;
  w.add_notes();
  w.notes.connected = false;
  Texts expected = all_lists;
  SECTION("without a record, the client may have all lists") {}
  SECTION("with a record, the client has the recorded lists") {
    LedgerRecord record;
    record.listed = 1u << static_cast<unsigned>(ItemKind::tool);
    w.leave(record);
    expected.resize(1);
  }
  SECTION("the profile announces no changes") {
    w.profile.expose.list_changed = false;
    expected.clear();
  }
  w.restore();
  CHECK(wait_for(*w.loop, [&] { return w.idle == 1; }));
  CHECK(w.client.sent.empty());
  w.connect_notes();
  w.restored.lists_ready(*w.session.view);
  CHECK(w.told() == expected);
  w.restored.lists_ready(*w.session.view);
  CHECK(w.told() == expected);
}

TEST_CASE("a record is treated as untrusted input") {
  World w;
  w.add_notes();
  LedgerRecord record;
  record.listed = 0xFF;
  record.log_level = GENERATE(-7, 8, 1 << 20);
  // A stored URI that is not exactly one JSON string could add members to the subscribe request.
  record.subscriptions = {"\"note:///1\"",
                          "\"a\"},\"method\":\"tools/call\",\"x\":{\"y\":\"z\"",
                          "\"note:///2\",\"name\":\"x\"",
                          "7",
                          "",
                          "\"note:///2\""};
  w.leave(record);
  w.restore();
  CHECK(w.session.log_level == -1);
  CHECK(w.session.listed < (1u << item_kinds));
  w.restored.lists_ready(*w.session.view);
  CHECK(w.subscribed == Texts{"\"note:///1\"", "\"note:///2\""});
  CHECK(w.session.to_subscribe.empty());
}

TEST_CASE("a record restores a valid log level, and no more subscriptions than the limit") {
  World w;
  w.add_notes();
  w.profile.limits.subscriptions_per_session = 1;
  LedgerRecord record;
  record.log_level = 7;
  record.subscriptions = {"\"note:///2\"", "\"note:///1\""};
  w.leave(record);
  w.restore();
  CHECK(w.session.log_level == 7);
  w.restored.lists_ready(*w.session.view);
  CHECK(w.subscribed == Texts{"\"note:///2\""});
}

TEST_CASE("a subscription is restored only once a server offers its resource") {
  World w;
  w.add("tools", R"([{"name":"x"}])");
  LedgerRecord record;
  record.subscriptions = {"\"note:///3\"", "\"note:///1\""};
  w.leave(record);
  w.restore();
  w.restored.lists_ready(*w.session.view);
  CHECK(w.subscribed.empty());
  CHECK(w.session.to_subscribe.size() == 2);
  w.add_notes();
  w.views.exchange({}, [] {});
  w.restored.lists_ready(*w.session.view);
  CHECK(w.subscribed == Texts{"\"note:///1\""});
  CHECK(w.session.to_subscribe == Texts{"\"note:///3\""});
}

TEST_CASE(
    "pending requests of an earlier process receive one error response each, in a later turn") {
  World w;
  LedgerRecord record;
  record.revision = newest_revision;
  record.caps = ~0u;
  w.ledger->write(Ledger::carried, record);
  w.ledger->add_request(3, "1", false);
  w.ledger->add_request(4, "\"two\"", false);
  w.ledger->add_request(5, R"(1,"result":{})", false);  // not a single valid id
  w.ledger->add_request(6, "null", false);
  w.next_process();
  const auto carried = w.restored.carry(w.session.handle);
  REQUIRE(carried.has_value());
  CHECK(carried->restored);
  CHECK(carried->last_stream == 6);
  CHECK(w.session.caps == 2 * cap::elicitation_url - 1);
  CHECK(w.restored.owes());
  CHECK(w.client.sent.empty());
  CHECK(wait_for(*w.loop, [&] { return w.idle != 0; }));
  CHECK_FALSE(w.restored.owes());
  std::vector<std::pair<std::uint64_t, std::string>> answered;
  for (const FakeClient::Sent &sent : w.client.sent) {
    if (sent.kind != BH_OUT_ANSWER) continue;
    CHECK(mcp::member(mcp::member(sent.text, "error"), "code") == "-32603");
    answered.emplace_back(sent.stream, mcp::member(sent.text, "id"));
  }
  CHECK(answered == std::vector<std::pair<std::uint64_t, std::string>>{{3, "1"}, {4, "\"two\""}});
  // Requests with invalid ids are removed. Other requests stay until the transport has sent their
  // responses.
  std::vector<std::uint64_t> left;
  for (const LedgerRequest &request : w.ledger->requests()) left.push_back(request.stream);
  CHECK(left == std::vector<std::uint64_t>{3, 4});
  CHECK_FALSE(w.restored.carry(open_session(w.sessions, w.client).handle).has_value());
}

TEST_CASE("a client without a complete handshake is carried but not restored") {
  World w;
  LedgerRecord record;
  record.revision = newest_revision;
  std::size_t answers = 0;
  SECTION("its initialize request is pending") {
    w.ledger->write(Ledger::carried, record);
    w.ledger->add_request(3, "0", true);
    answers = 1;
  }
  SECTION("its revision is unknown") {
    record.revision = 200;
    w.ledger->write(Ledger::carried, record);
  }
  SECTION("there is no record") {}
  w.next_process();
  const auto carried = w.restored.carry(w.session.handle);
  REQUIRE(carried.has_value());
  CHECK_FALSE(carried->restored);
  CHECK_FALSE(w.session.initialized);
  CHECK_FALSE(w.ledger->read(Ledger::carried).has_value());
  w.loop->poll(0);
  REQUIRE(w.client.sent.size() == answers);
  if (answers != 0) CHECK(w.client.sent[0].text.find("send initialize again") != std::string::npos);
}

TEST_CASE("without a ledger, no client is carried and no responses are pending") {
  World w;
  CHECK_FALSE(w.restored.carry(w.session.handle).has_value());
  w.next_process();
  CHECK_FALSE(w.restored.carry(w.session.handle + 1'000).has_value());
  CHECK(w.restored.carry(w.session.handle).has_value());
  CHECK_FALSE(w.restored.owes());
}

TEST_CASE("a client that disconnects before its pending responses are sent receives none") {
  World w;
  w.ledger->add_request(3, "1", false);
  w.next_process();
  REQUIRE(w.restored.carry(w.session.handle).has_value());
  w.journal.forget(w.session);
  w.sessions.erase(w.session.handle);
  CHECK(wait_for(*w.loop, [&] { return w.idle != 0; }));
  CHECK(w.client.sent.empty());
  CHECK_FALSE(w.restored.owes());
}
