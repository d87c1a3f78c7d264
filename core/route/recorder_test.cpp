// Tests records: which parts of a call are stored, what happens when space runs out, and commits.
#include "route/recorder.hpp"

#include <catch2/catch.hpp>
#include <cstring>

#include "route/fakes.hpp"
#include "route/record_fakes.hpp"

using namespace bulkhead;

namespace {

struct World {
  std::unique_ptr<Reactor> loop = *Reactor::create();
  FakeArchive archive, other;
  std::unique_ptr<RecordRing::Memory> memory = std::make_unique<RecordRing::Memory>();
  RecordRing ring{*memory};
  Recorder recorder{*loop};
  CallTable calls;
  Sessions sessions{1};
  FakeClient client;
  Session &session = open_session(sessions, client);

  explicit World(std::uint32_t needs = BH_TELEMETRY_TEXTS | BH_TELEMETRY_EVENTS) {
    archive.needs = needs;
    recorder.add_sink(&archive_table, &archive);
  }
  Call &begin(const std::string &params = R"({"name":"x","arguments":{"key":"secret"}})") {
    const Scanned message(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":)" + params +
                          "}");
    Call &call = *calls.open();
    call.session = &session;
    call.method = mcp::Method::tools_call;
    call.name = "x";
    recorder.begin(call, message.text, message.scan);
    return call;
  }
  void end(Call &call, std::uint32_t outcome, bool has_place = true) {
    recorder.record(call, {outcome, loop->now_ns(), 0, {}, {}, R"({"ok":1})"}, has_place);
    calls.close(call);
  }
  const FakeArchive::Record &last() {
    recorder.flush();
    REQUIRE_FALSE(archive.records.empty());
    return archive.records.back();
  }
  std::vector<std::uint64_t> kept_in_ring() const {
    std::vector<std::uint64_t> out;
    ring.for_each([&](const bh_record &record) { out.push_back(record.number); });
    return out;
  }
};

}  // namespace

TEST_CASE("the arguments of a call that was refused before it was sent are not recorded") {
  World w;
  Call &sent = w.begin();
  sent.account.dispatched = true;
  w.end(sent, BH_OUTCOME_REFUSED);
  CHECK(w.last().request == R"({"name":"x","arguments":{"key":"secret"}})");
  CHECK(w.last().principal == "somebody");
  w.end(w.begin(), BH_OUTCOME_REFUSED);
  CHECK(w.last().request == R"({"name":"x","arguments":{"redacted_by_policy":true}})");
  // The policy may have refused the call because of `task`, so that member is removed as well.
  w.end(w.begin(R"({"name":"x","arguments":{},"task":{"key":"secret"}})"), BH_OUTCOME_REFUSED);
  CHECK(w.last().request == R"({"arguments":{"redacted_by_policy":true}})");
  // Arguments that exceed the maximum text size are also replaced.
  const std::string large(BH_RECORD_TEXT_BYTES, 's');
  w.end(w.begin(R"({"name":"x","arguments":{"key":")" + large + R"("}})"), BH_OUTCOME_REFUSED);
  CHECK(w.last().request == R"({"name":"x","arguments":{"redacted_by_policy":true}})");
  CHECK((w.last().flags & BH_RECORD_REQUEST_CUT) != 0);
}

TEST_CASE("a record contains the arguments as rewritten by the policy") {
  World w;
  Call &call = w.begin(R"({"name":"x","arguments":{"key":"secret"},"_meta":{}})");
  call.account.dispatched = true;
  w.recorder.note_rewritten(call, R"({"key":"***"})");
  w.recorder.note_rewritten(call, R"({"key":"*","more":1})");  // rewritten by a second policy
  w.recorder.note_response(call, R"({"secret":1})");
  w.end(call, BH_OUTCOME_OK);
  CHECK(w.last().request == R"({"name":"x","arguments":{"key":"*","more":1},"_meta":{}})");
  CHECK(w.last().response == R"({"ok":1})");
}

TEST_CASE("texts are stored up to a total size for a plugin that needs them") {
  World w(BH_TELEMETRY_EVENTS);
  CHECK(w.begin().account.request.empty());
  w.archive.needs = BH_TELEMETRY_TEXTS;
  const std::string params =
      R"({"name":"x","arguments":")" + std::string(BH_RECORD_TEXT_BYTES, 's') + "\"}";
  std::vector<Call *> open;
  for (std::size_t bytes = 0; bytes < Recorder::max_text_bytes; bytes += BH_RECORD_TEXT_BYTES) {
    open.push_back(&w.begin(params));
    REQUIRE(open.back()->account.request.size() == BH_RECORD_TEXT_BYTES);
  }
  Call &without = w.begin();
  CHECK(without.account.request.empty());
  CHECK((without.account.flags & BH_RECORD_REQUEST_CUT) != 0);
  w.recorder.forget(*open[0]);
  CHECK_FALSE(w.begin().account.request.empty());
  w.end(*open[1], BH_OUTCOME_OK);  // the text still counts until the plugin has accepted the record
  w.recorder.flush();
  CHECK(w.begin(params).account.request.size() == BH_RECORD_TEXT_BYTES);
}

TEST_CASE("records above the limit are dropped and counted, and their numbers are missing") {
  World w;
  w.archive.room = 0;
  Call &call = w.begin();
  for (std::size_t i = 0; i < Recorder::max_waiting + 3; ++i) {
    w.recorder.event(call, BH_RECORD_NET, "{}");
  }
  CHECK(w.recorder.dropped() == 3);
  CHECK_FALSE(w.recorder.must_refuse(0));  // no plugin requires records
  w.end(w.begin(), BH_OUTCOME_OK);
  CHECK(w.recorder.dropped() == 4);
  w.archive.room = SIZE_MAX;
  w.recorder.flush();
  REQUIRE(w.archive.records.size() == Recorder::max_waiting);
  const std::uint64_t number = w.archive.records.back().number;
  w.end(w.begin(), BH_OUTCOME_OK);
  CHECK(w.last().number == number + 5);
}

TEST_CASE(
    "if a plugin requires records, calls are refused before the limit and all others are "
    "recorded") {
  World w(BH_TELEMETRY_EVENTS | BH_TELEMETRY_BLOCKS);
  w.archive.room = 0;
  Call &call = w.begin();
  for (std::size_t i = 0; i + 2 < Recorder::max_waiting; ++i) {
    w.recorder.event(call, BH_RECORD_NET, "{}");
  }
  CHECK_FALSE(w.recorder.must_refuse(1));
  CHECK(w.recorder.must_refuse(2));
  for (int i = 0; i < 4; ++i) w.end(w.begin(), BH_OUTCOME_OK);
  CHECK(w.recorder.dropped() == 0);
  w.end(w.begin(), BH_OUTCOME_REFUSED, false);  // refused because there is no space for its record
  w.recorder.event(call, BH_RECORD_NET, "{}");
  CHECK(w.recorder.dropped() == 2);
}

TEST_CASE("records are committed once every plugin that commits has committed them") {
  World w(BH_TELEMETRY_EVENTS | BH_TELEMETRY_COMMITS);
  w.other.needs = BH_TELEMETRY_EVENTS;  // this plugin does not require commits
  w.recorder.add_sink(&archive_table, &w.other);
  Call &call = w.begin();
  w.recorder.intent(call);
  CHECK(call.account.intent + 1 == w.recorder.barrier());
  const std::uint64_t barrier = w.recorder.barrier();
  w.recorder.set_committed(&w.other, barrier);
  CHECK_FALSE(w.recorder.is_committed(barrier));
  w.recorder.set_committed(&w.archive, UINT64_MAX);
  CHECK(w.recorder.is_committed(barrier));
  w.end(call, BH_OUTCOME_OK);
  CHECK_FALSE(w.recorder.is_committed(w.recorder.barrier()));
  w.recorder.set_committed(&w.archive, 1);  // ignored: lower than the previous number
  CHECK(w.recorder.is_committed(barrier));
  CHECK(w.last().intent == barrier - 1);
  w.other.needs |= BH_TELEMETRY_COMMITS;
  CHECK_FALSE(w.recorder.is_committed(w.recorder.barrier()));
  // Without events, there are no intent records to commit.
  w.archive.needs = w.other.needs = BH_TELEMETRY_COMMITS;
  CHECK_FALSE(w.recorder.commits());
}

TEST_CASE("a plugin receives each record once and in order, regardless of the other plugins") {
  World w;
  w.other.needs = 0;  // needs records of calls only
  w.other.room = 1;
  w.recorder.add_sink(&archive_table, &w.other);
  for (int i = 0; i < 3; ++i) {
    Call &call = w.begin();
    w.recorder.event(call, BH_RECORD_FS, "{}");
    w.end(call, BH_OUTCOME_OK);
  }
  w.recorder.flush();
  w.recorder.flush();
  CHECK(w.other.records.size() == 1);
  w.other.room = SIZE_MAX;
  w.recorder.flush();
  REQUIRE(w.archive.records.size() == 6);
  REQUIRE(w.other.records.size() == 3);
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(w.archive.records[i].number == w.archive.records[0].number + i);
  }
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(w.other.records[i].number == w.archive.records[2 * i + 1].number);
  }
}

TEST_CASE(
    "a record survives the process until each plugin in another process has acknowledged it") {
  World w;
  w.recorder.add_sink(&archive_table, &w.other, true);
  FakeArchive third;
  w.recorder.add_sink(&archive_table, &third, true);
  w.recorder.use_ring(&w.ring);
  CHECK(w.recorder.goes_first());
  w.end(w.begin(), BH_OUTCOME_OK);
  w.recorder.gateway_event(BH_RECORD_POLICY, "{}");
  w.end(w.begin(), BH_OUTCOME_OK);
  const std::vector<std::uint64_t> all = w.kept_in_ring();
  REQUIRE(all.size() == 3);
  w.recorder.flush();
  // Ignored: this plugin runs in the same process.
  w.recorder.set_acknowledged(&w.archive, UINT64_MAX);
  w.recorder.set_acknowledged(&w.other, all[2]);
  CHECK(w.kept_in_ring() == all);
  w.recorder.set_acknowledged(&third, all[1]);
  CHECK(w.kept_in_ring() == std::vector<std::uint64_t>{all[1], all[2]});
  w.recorder.set_acknowledged(&third, all[0]);  // ignored: lower than the previous number
  w.recorder.set_acknowledged(&third, UINT64_MAX);
  CHECK(w.kept_in_ring() == std::vector<std::uint64_t>{all[2]});
  // A record that a plugin has not accepted yet is kept, even if the other plugins acknowledge it.
  w.archive.room = 0;
  w.end(w.begin(), BH_OUTCOME_OK);
  w.recorder.flush();
  w.recorder.set_acknowledged(&w.other, UINT64_MAX);
  CHECK(w.kept_in_ring().size() == 1);
}

TEST_CASE("records of an earlier process stay in the ring if another record there is invalid") {
  World w;
  bh_record record{};
  record.size = sizeof record;
  const auto put = [&](std::uint64_t number) {
    record.number = number;
    REQUIRE(w.ring.put(record));
  };
  const auto size = [&] {
    return static_cast<std::uint32_t>(w.memory->ends.load(std::memory_order_relaxed));
  };
  put(5);
  SECTION("a number that is not ascending") {
    put(3);
    put(7);
  }
  SECTION("a damaged entry") {
    put(7);
    const std::uint32_t begin = size();
    put(9);
    const std::uint32_t wrong = 1;
    std::memcpy(w.memory->bytes.data() + begin, &wrong, sizeof wrong);
  }
  SECTION("a damaged text") {
    put(7);
    const std::uint32_t begin = size();
    put(9);
    std::memset(w.memory->bytes.data() + begin + sizeof(std::uint32_t), 0xFF,
                size() - begin - sizeof(std::uint32_t));
  }
  w.recorder.add_sink(&archive_table, &w.other, true);
  w.recorder.use_ring(&w.ring);
  CHECK(w.kept_in_ring() == std::vector<std::uint64_t>{5, 7});
  w.end(w.begin(), BH_OUTCOME_OK);
  w.recorder.flush();
  REQUIRE(w.other.records.size() == 3);
  const std::uint64_t newest = w.other.records[2].number;
  CHECK(w.kept_in_ring() == std::vector<std::uint64_t>{5, 7, newest});
  w.recorder.set_acknowledged(&w.other, 6);
  CHECK(w.kept_in_ring() == std::vector<std::uint64_t>{7, newest});
}

TEST_CASE("the beginning of a long name is recorded, also if it contains escape sequences") {
  World w;
  const auto recorded = [&w](const std::string &unit, std::size_t units) {
    std::string name;
    for (std::size_t i = 0; i < units; ++i) name += unit;
    const Scanned message(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":")" +
                          name + R"("}})");
    w.recorder.record({&w.session, w.session.handle, message.text, &message.scan, 0},
                      {BH_OUTCOME_ERROR, 0, 0, {}, {}, {}});
    return w.last().name;
  };
  const auto repeated = [](const std::string &unit, std::size_t units) {
    std::string out;
    for (std::size_t i = 0; i < units; ++i) out += unit;
    return out;
  };
  struct Case {
    std::string unit, text;
  };
  for (const Case &c :
       {Case{"x", "x"}, Case{"\\u0041", "A"}, Case{"\\\\", "\\"}, Case{"\\\"u", "\"u"},
        Case{"\xC3\xA9", "\xC3\xA9"}, Case{"\\ud83d\\ude00", "\xF0\x9F\x98\x80"}}) {
    const std::size_t kept = Recorder::max_text / c.text.size();
    INFO(c.unit);
    CHECK(recorded(c.unit, kept - 1) == repeated(c.text, kept - 1));
    CHECK(recorded(c.unit, 2'000) == repeated(c.text, kept));
    CHECK(recorded(c.unit, 100'000) == repeated(c.text, kept));
  }
}
