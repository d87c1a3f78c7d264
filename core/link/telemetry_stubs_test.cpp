// Tests both stubs of a telemetry link.
#include "link/judges_world.hpp"

using namespace bulkhead;
using namespace bulkhead::link;

namespace {

struct Book {
  std::vector<std::uint64_t> numbers;
  std::uint32_t at_most = 1000;
  static const bh_telemetry &table() {
    static constexpr bh_telemetry table{
        sizeof(bh_telemetry), 0,
        [](void *self, const bh_record *const *records, std::uint32_t n) -> std::uint32_t {
          auto &book = *static_cast<Book *>(self);
          const std::uint32_t taken = std::min(n, book.at_most);
          for (std::uint32_t i = 0; i < taken; ++i) book.numbers.push_back(records[i]->number);
          return taken;
        },
        [](void *) -> std::uint32_t { return BH_TELEMETRY_TEXTS | BH_TELEMETRY_BLOCKS; }};
    return table;
  }
};

std::vector<std::uint64_t> numbers_in(std::string_view payload, std::uint32_t count) {
  std::vector<std::uint64_t> out;
  ArchiveReader reader(payload);
  for (std::uint32_t i = 0; i < count; ++i) {
    RecordText text;
    reader(text);
    out.push_back(text.number);
  }
  CHECK(reader.done());
  return out;
}

std::uint32_t offer(TelemetryClientStub &client, std::uint64_t first, std::uint32_t n) {
  std::vector<bh_record> records(n);
  std::vector<const bh_record *> pointers;
  for (std::uint32_t i = 0; i < n; ++i) {
    records[i].size = sizeof(bh_record);
    records[i].number = first + i;
    records[i].name = bh::str("tool");
    pointers.push_back(&records[i]);
  }
  return TelemetryClientStub::table().batch(&client, pointers.data(), n);
}

}  // namespace

TEST_CASE("telemetry: a limited number of records waits for the process and is delivered once") {
  Loop w;
  Heard heard;
  TelemetryClientStub client(*w.reactor, "telemetry", true, heard);
  CHECK(offer(client, 100, 5000) == TelemetryClientStub::max_records);
  CHECK(offer(client, 9000, 1) == 0);
  CHECK(client.idle());  // no process is connected
  Book book;
  ServedPlugin plugin;
  plugin.telemetry = &Book::table();
  plugin.self = &book;
  TelemetryServerStub server(*w.reactor, plugin);
  auto pair = socket_pair();
  server.attach(std::move(pair->first));
  client.attach(std::move(pair->second));
  CHECK_FALSE(client.idle());
  REQUIRE(w.until([&] { return client.kept() == 0; }));
  CHECK(heard.taken > 0);
  REQUIRE(book.numbers.size() == TelemetryClientStub::max_records);
  CHECK(book.numbers.front() == 100);
  CHECK(book.numbers.back() == 100 + TelemetryClientStub::max_records - 1);
  SECTION("records that the plugin did not accept are sent again") {
    book.numbers.clear();
    book.at_most = 2;
    CHECK(offer(client, 9000, 5) == 5);
    REQUIRE(w.until([&] { return client.kept() == 0; }));
    CHECK(book.numbers == std::vector<std::uint64_t>{9000, 9001, 9002, 9003, 9004});
  }
  SECTION("the same with several frames, in order") {
    book.numbers.clear();
    book.at_most = 2;
    std::vector<std::uint64_t> all;
    for (std::uint64_t frame = 0; frame < 3; ++frame) {
      CHECK(offer(client, 9000 + 3 * frame, 3) == 3);  // one frame per call
      for (std::uint64_t i = 0; i < 3; ++i) all.push_back(9000 + 3 * frame + i);
    }
    REQUIRE(w.until([&] { return client.kept() == 0; }));
    CHECK(book.numbers == all);
  }
  CHECK(heard.ended.empty());
}

TEST_CASE("telemetry: the plugin's needs and counters reach the client stub") {
  Loop w;
  Heard heard;
  TelemetryClientStub client(*w.reactor, "telemetry", true, heard);
  const auto needs = [&] { return TelemetryClientStub::table().needs(&client); };
  // The stub reports all needs because it does not know the plugin's needs yet.
  CHECK(needs() ==
        (BH_TELEMETRY_TEXTS | BH_TELEMETRY_EVENTS | BH_TELEMETRY_COMMITS | BH_TELEMETRY_BLOCKS));
  Book book;
  ServedPlugin plugin;
  plugin.telemetry = &Book::table();
  plugin.self = &book;
  std::uint64_t written = 7;
  plugin.counters = [&] {
    return std::vector<std::pair<std::string, std::uint64_t>>{{"written", written}};
  };
  TelemetryServerStub server(*w.reactor, plugin);
  auto pair = socket_pair();
  server.attach(std::move(pair->first));
  client.attach(std::move(pair->second));
  REQUIRE(w.until([&] { return needs() == (BH_TELEMETRY_TEXTS | BH_TELEMETRY_BLOCKS); }));
  REQUIRE(w.until([&] { return client.counters().size() == 1; }));
  CHECK(client.counters()[0] == std::pair<std::string, std::uint64_t>{"written", 7});
  written = 8;
  REQUIRE(w.until([&] { return client.counters()[0].second == 8; }));
  Peer peer;
  SECTION("both are kept when the process ends") {
    client.attach(peer.open(*w.reactor));
    peer.channel.reset();
    REQUIRE(w.until([&] { return client.idle(); }));
    CHECK(needs() == (BH_TELEMETRY_TEXTS | BH_TELEMETRY_BLOCKS));
    CHECK(client.counters().size() == 1);
  }
  SECTION("the counters of the next process are added") {
    const auto sent = [&](std::uint64_t lost, std::uint64_t count) {
      CountersText text;
      text.values = {{"lost", lost}, {"written", count}};
      peer.send(FrameKind::telemetry_counters, 0, 0, to_bytes(text));
    };
    const auto total = [&](std::string_view name) {
      for (const auto &[counter, value] : client.counters()) {
        if (counter == name) return value;
      }
      return ~std::uint64_t{0};
    };
    client.attach(peer.open(*w.reactor));
    sent(1, 0);
    REQUIRE(w.until([&] { return total("lost") == 1; }));
    CHECK(total("written") == 8);
    sent(2, 5);
    REQUIRE(w.until([&] { return total("written") == 13; }));
    CHECK(total("lost") == 2);
    client.attach(peer.open(*w.reactor));
    sent(0, 1);
    REQUIRE(w.until([&] { return total("written") == 14; }));
    CHECK(total("lost") == 2);
    CHECK(client.counters().size() == 2);
  }
  SECTION("invalid counters end the process") {
    client.attach(peer.open(*w.reactor));
    CountersText bad;
    bad.values = {{"Not a\nname", 1}};
    peer.send(FrameKind::telemetry_counters, 0, 0, to_bytes(bad));
    REQUIRE(w.until([&] { return !heard.ended.empty(); }));
  }
}

TEST_CASE("telemetry: a required plugin is assumed to commit until it reports its needs") {
  Loop w;
  Heard heard;
  const auto commits = [](TelemetryClientStub &client) {
    return (TelemetryClientStub::table().needs(&client) & BH_TELEMETRY_COMMITS) != 0;
  };
  TelemetryClientStub required(*w.reactor, "telemetry", true, heard);
  TelemetryClientStub other(*w.reactor, "telemetry", false, heard);
  CHECK(commits(required));
  CHECK(commits(other));
  required.give_up("it ended five times");
  other.give_up("it ended five times");
  CHECK(commits(required));
  CHECK_FALSE(commits(other));
  SECTION("an earlier process has reported that it does not") {
    required.expect(BH_TELEMETRY_TEXTS);
    CHECK(TelemetryClientStub::table().needs(&required) == BH_TELEMETRY_TEXTS);
    required.expect(BH_TELEMETRY_COMMITS);  // no effect, because the needs are already known
    CHECK_FALSE(commits(required));
  }
  SECTION("an earlier process has reported that it does, and it is not started again") {
    TelemetryClientStub next(*w.reactor, "telemetry", false, heard);
    next.expect(BH_TELEMETRY_COMMITS | BH_TELEMETRY_EVENTS);
    next.give_up("it ended five times");
    CHECK(commits(next));
  }
}

TEST_CASE("telemetry: all members of a record are delivered") {
  Loop w;
  Heard heard;
  TelemetryClientStub client(*w.reactor, "telemetry", true, heard);
  struct Reader {
    std::string request, response, trace, reason, id, claimed_name;
    std::uint64_t params = 0, result = 0;
    std::uint32_t action = 0, flags = 0, client_revision = 0, server_revision = 0;
  } reader;
  static constexpr bh_telemetry table{
      sizeof(bh_telemetry), 0,
      [](void *self, const bh_record *const *records, std::uint32_t n) -> std::uint32_t {
        auto &r = *static_cast<Reader *>(self);
        const bh_record &one = *records[0];
        r = {std::string(bh::view(one.request)),
             std::string(bh::view(one.response)),
             std::string(bh::view(one.trace_id)),
             std::string(bh::view(one.reason)),
             std::string(bh::view(one.request_id)),
             std::string(bh::view(one.claimed_name)),
             one.params_bytes,
             one.result_bytes,
             one.action,
             one.flags,
             one.client_revision,
             one.server_revision};
        return n;
      },
      nullptr};
  ServedPlugin plugin;
  plugin.telemetry = &table;
  plugin.self = &reader;
  TelemetryServerStub server(*w.reactor, plugin);
  auto pair = socket_pair();
  server.attach(std::move(pair->first));
  client.attach(std::move(pair->second));
  bh_record record{};
  record.size = sizeof record;
  record.number = 5;
  const std::string large(BH_RECORD_TEXT_BYTES, 'x');
  record.request = bh::str(large);
  record.response = bh::str("{}");
  record.trace_id = bh::str("t");
  record.reason = bh::str("why");
  record.request_id = bh::str("7");
  record.claimed_name = bh::str("Claude Code");
  record.params_bytes = 1u << 20;
  record.result_bytes = 2;
  record.action = BH_VERDICT_REWRITE;
  record.flags = BH_RECORD_REQUEST_CUT;
  record.client_revision = 20250618;
  record.server_revision = 20260728;
  const bh_record *pointer = &record;
  REQUIRE(TelemetryClientStub::table().batch(&client, &pointer, 1) == 1);
  REQUIRE(w.until([&] { return client.kept() == 0; }));
  CHECK(reader.request == large);
  CHECK(reader.response == "{}");
  CHECK(reader.trace == "t");
  CHECK(reader.reason == "why");
  CHECK(reader.id == "7");
  CHECK(reader.claimed_name == "Claude Code");
  CHECK(reader.params == 1u << 20);
  CHECK(reader.result == 2);
  CHECK(reader.action == BH_VERDICT_REWRITE);
  CHECK(reader.flags == BH_RECORD_REQUEST_CUT);
  CHECK(reader.client_revision == 20250618);
  CHECK(reader.server_revision == 20260728);
}

TEST_CASE("telemetry: unacknowledged records are sent to the next process") {
  Loop w;
  Heard heard;
  Peer peer;
  TelemetryClientStub client(*w.reactor, "telemetry", true, heard);
  client.attach(peer.open(*w.reactor));
  CHECK(offer(client, 10, 3) == 3);
  REQUIRE(w.until([&] { return peer.got.size() == 1; }));
  CHECK(peer.got[0].frame.code == 3);
  peer.send(FrameKind::telemetry_taken, 11);
  REQUIRE(w.until([&] { return client.kept() == 2; }));
  peer.channel.reset();
  REQUIRE(w.until([&] { return client.idle(); }));
  peer.got.clear();
  client.attach(peer.open(*w.reactor));
  REQUIRE(w.until([&] { return peer.got.size() == 1; }));
  CHECK(peer.got[0].frame.code == 2);
  CHECK(numbers_in(peer.got[0].payload, 2) == std::vector<std::uint64_t>{11, 12});
  SECTION("acknowledging a record that was never sent ends the process") {
    peer.send(FrameKind::telemetry_taken, 1000);
    REQUIRE(w.until([&] { return !heard.ended.empty(); }));
    CHECK(client.kept() == 2);
  }
  SECTION("a frame of another kind ends the process") {
    peer.send(policy_verdict, 1);
    REQUIRE(w.until([&] { return !heard.ended.empty(); }));
  }
}

TEST_CASE("telemetry: a malformed batch closes the link and does not reach the plugin") {
  Loop w;
  Peer peer;
  Book book;
  ServedPlugin plugin;
  plugin.telemetry = &Book::table();
  plugin.self = &book;
  TelemetryServerStub server(*w.reactor, plugin);
  bool lost = false;
  server.attach(peer.open(*w.reactor), [&] { lost = true; });
  SECTION("cut") {
    const std::string record = to_bytes(RecordText{});
    peer.send(telemetry_batch, 0, 2, record + record.substr(1));
  }
  SECTION("a count above the limit") {
    peer.send(telemetry_batch, 0, 1u << 30);
  }
  SECTION("a frame of another kind") {
    peer.send(policy_decide, 0);
  }
  REQUIRE(w.until([&] { return lost; }));
  CHECK(book.numbers.empty());
}

TEST_CASE("telemetry: records that the plugin has not accepted are limited in bytes") {
  Loop w;
  Peer peer;
  Book book;
  book.at_most = 0;
  ServedPlugin plugin;
  plugin.telemetry = &Book::table();
  plugin.self = &book;
  TelemetryServerStub server(*w.reactor, plugin);
  bool lost = false;
  server.attach(peer.open(*w.reactor), [&] { lost = true; });
  const std::string text(BH_RECORD_TEXT_BYTES, 'x');
  RecordText large;
  large.request = text;
  const std::string one = to_bytes(large);
  const std::uint64_t fit = TelemetryServerStub::max_waiting_bytes / one.size();
  const auto send_batch = [&] {
    peer.send(telemetry_batch, 0, 1, one);
    w.turn();
    w.turn();
  };
  for (std::uint64_t i = 0; i < fit; ++i) send_batch();
  CHECK_FALSE(lost);
  peer.send(telemetry_batch, 0, 1, one);
  REQUIRE(w.until([&] { return lost; }));
}

TEST_CASE("telemetry: if a plugin commits, its records count as accepted once they are committed") {
  Loop w;
  Heard heard;
  TelemetryClientStub client(*w.reactor, "telemetry", true, heard);
  struct Slow {
    std::uint32_t taken = 0;
  } slow;
  static constexpr bh_telemetry table{
      sizeof(bh_telemetry), 0,
      [](void *self, const bh_record *const *, std::uint32_t n) -> std::uint32_t {
        static_cast<Slow *>(self)->taken += n;
        return n;
      },
      [](void *) -> std::uint32_t { return BH_TELEMETRY_COMMITS | BH_TELEMETRY_EVENTS; }};
  ServedPlugin plugin;
  plugin.telemetry = &table;
  plugin.self = &slow;
  TelemetryServerStub server(*w.reactor, plugin);
  auto pair = socket_pair();
  server.attach(std::move(pair->first));
  client.attach(std::move(pair->second));
  CHECK(offer(client, 10, 3) == 3);
  REQUIRE(w.until([&] { return slow.taken == 3; }));
  CHECK(client.kept() == 3);
  server.committed(12);
  REQUIRE(w.until([&] { return client.kept() == 1; }));
  CHECK(heard.committed == 12);
  server.committed(1000);  // above the number of the last record
  REQUIRE(w.until([&] { return client.kept() == 0; }));
  CHECK(heard.committed == 13);
  CHECK(heard.ended.empty());
}

TEST_CASE("telemetry: a plugin that requests only calls receives only calls") {
  Loop w;
  Heard heard;
  TelemetryClientStub client(*w.reactor, "telemetry", true, heard);
  bh_record records[2] = {};
  const bh_record *pointers[2];
  for (std::uint32_t i = 0; i < 2; ++i) {
    records[i].size = sizeof(bh_record);
    records[i].number = 5 + i;
    records[i].kind = i == 0 ? BH_RECORD_APPROVAL : BH_RECORD_CALL;
    pointers[i] = &records[i];
  }
  // These records are sent before the plugin's needs are known.
  CHECK(TelemetryClientStub::table().batch(&client, pointers, 2) == 2);
  Book book;
  ServedPlugin plugin;
  plugin.telemetry = &Book::table();
  plugin.self = &book;
  TelemetryServerStub server(*w.reactor, plugin);
  auto pair = socket_pair();
  server.attach(std::move(pair->first));
  client.attach(std::move(pair->second));
  REQUIRE(w.until([&] { return client.kept() == 0; }));
  CHECK(book.numbers == std::vector<std::uint64_t>{6});
}

TEST_CASE("telemetry: records that a restarted endpoint offers again reach the plugin once") {
  Loop w;
  Heard heard;
  Book book;
  ServedPlugin plugin;
  plugin.telemetry = &Book::table();
  plugin.self = &book;
  TelemetryServerStub server(*w.reactor, plugin);
  {
    TelemetryClientStub first(*w.reactor, "telemetry", true, heard);
    auto pair = socket_pair();
    server.attach(std::move(pair->first));
    first.attach(std::move(pair->second));
    CHECK(offer(first, 10, 3) == 3);
    REQUIRE(w.until([&] { return first.kept() == 0; }));
    CHECK(first.acknowledged_below() == 13);
  }
  TelemetryClientStub second(*w.reactor, "telemetry", true, heard);
  SECTION("numbers of the endpoint before this one") {
    second.set_earlier_below(15);
    auto pair = socket_pair();
    server.attach(std::move(pair->first));
    second.attach(std::move(pair->second));
    CHECK(offer(second, 11, 6) == 6);
    REQUIRE(w.until([&] { return second.kept() == 0; }));
    CHECK(book.numbers == std::vector<std::uint64_t>{10, 11, 12, 13, 14, 15, 16});
    CHECK(second.acknowledged_below() == 17);
  }
  SECTION("the clock was set back: the records are new ones") {
    auto pair = socket_pair();
    server.attach(std::move(pair->first));
    second.attach(std::move(pair->second));
    CHECK(offer(second, 5, 2) == 2);
    REQUIRE(w.until([&] { return second.kept() == 0; }));
    CHECK(book.numbers == std::vector<std::uint64_t>{10, 11, 12, 5, 6});
  }
  CHECK(heard.ended.empty());
}
