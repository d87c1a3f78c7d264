#include "route/record_ring.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "bulkhead/cpp/basics.hpp"
#include "route/recorder.hpp"

using namespace bulkhead;

namespace {

struct Seen {
  std::uint64_t number;
  std::uint32_t flags;
  std::string name, request, response, detail, claimed_name;
};

struct World {
  std::unique_ptr<RecordRing::Memory> memory = std::make_unique<RecordRing::Memory>();
  RecordRing ring{*memory};

  bool put(std::uint64_t number, const std::string &request = "{}",
           const std::string &detail = {}) {
    bh_record r{};
    r.size = sizeof r;
    r.number = number;
    r.kind = 3;
    r.intent = number + 1;
    r.name = bh::str("a tool");
    r.request = bh::str(request);
    r.response = bh::str("[]");
    r.detail = bh::str(detail);
    r.claimed_name = bh::str("Claude Code");
    r.client_revision = 20250618;
    r.server_revision = 20260728;
    return ring.put(r);
  }
  // Returns the records that the next process would read from the ring.
  std::vector<Seen> left() const {
    std::vector<Seen> out;
    RecordRing(*memory).for_each([&](const bh_record &r) {
      CHECK(r.intent == r.number + 1);
      CHECK(r.kind == 3);
      CHECK(r.client_revision == 20250618);
      CHECK(r.server_revision == 20260728);
      out.push_back({r.number, r.flags, std::string(bh::view(r.name)),
                     std::string(bh::view(r.request)), std::string(bh::view(r.response)),
                     std::string(bh::view(r.detail)), std::string(bh::view(r.claimed_name))});
    });
    return out;
  }
  // Like left(), but returns only the numbers and accepts records of any kind.
  std::vector<std::uint64_t> left_numbers() const {
    std::vector<std::uint64_t> out;
    RecordRing(*memory).for_each([&](const bh_record &r) { out.push_back(r.number); });
    return out;
  }
  std::vector<std::uint64_t> numbers() const {
    std::vector<std::uint64_t> out;
    for (const Seen &one : left()) out.push_back(one.number);
    return out;
  }
};

}  // namespace

TEST_CASE("a record is available to the next process until it is acknowledged") {
  World w;
  CHECK(w.ring.empty());
  CHECK(w.left().empty());
  for (std::uint64_t n = 10; n < 15; ++n) CHECK(w.put(n, "{\"n\":" + std::to_string(n) + "}"));
  REQUIRE(w.left().size() == 5);
  CHECK(w.left()[1].name == "a tool");
  CHECK(w.left()[1].request == "{\"n\":11}");
  CHECK(w.left()[1].response == "[]");
  CHECK(w.left()[1].claimed_name == "Claude Code");
  w.ring.release(12);
  CHECK(w.numbers() == std::vector<std::uint64_t>{12, 13, 14});
  w.ring.release(12);
  CHECK(w.numbers().size() == 3);
  w.ring.release(100);
  CHECK(w.ring.empty());
  CHECK(w.put(100));
  CHECK(w.numbers() == std::vector<std::uint64_t>{100});
  w.ring.set_next_number(101);
  w.ring.clear();
  CHECK(RecordRing(*w.memory).next_number() == 101);
  CHECK(w.left().empty());
}

TEST_CASE(
    "texts are truncated between characters with a flag; a record that is too large is rejected") {
  World w;
  const std::string text(RecordRing::max_text - 1, 'x');
  CHECK(w.put(1, text + "\xC3\xBC" + "more"));
  CHECK(w.put(2, text + "y"));
  REQUIRE(w.left().size() == 2);
  CHECK(w.left()[0].request == text);
  CHECK(w.left()[0].flags == BH_RECORD_REQUEST_CUT);
  CHECK(w.left()[1].request == text + "y");
  CHECK(w.left()[1].flags == 0);
  CHECK_FALSE(w.put(3, "{}", std::string(RecordRing::max_record, 'd')));
  CHECK(w.put(4, "{}", std::string(RecordRing::max_record - 1000, 'd')));
  CHECK(w.numbers() == std::vector<std::uint64_t>{1, 2, 4});
}

TEST_CASE("the ring is first-in-first-out at all offsets and never overwrites entries") {
  World w;
  std::deque<std::uint64_t> model;
  std::uint64_t number = 1, state = 12345;
  const auto random = [&](std::uint64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
  };
  bool was_full = false;
  for (int round = 0; round < 40; ++round) {
    const bool fill = round % 4 == 0;
    for (int i = 0; i < (fill ? 20'000 : 2'000); ++i) {
      const std::string detail(random(fill ? 8'000 : 900), 'd');
      if (w.put(number, "{}", detail)) {
        model.push_back(number);
      } else {
        was_full = true;
        CHECK(w.ring.nearly_full());
      }
      ++number;
      if (fill ? w.ring.nearly_full() && random(2) == 0 : model.size() > random(300)) {
        model.pop_front();
        w.ring.release(model.empty() ? number : model.front());
      }
    }
    CHECK(w.numbers() == std::vector<std::uint64_t>(model.begin(), model.end()));
  }
  CHECK(was_full);
}

TEST_CASE("a few records at a time touch little of the memory") {
  World w;
  for (std::uint64_t n = 1; n < 100'000; ++n) {
    CHECK(w.put(n, std::string(1'000, 'x')));
    if (n > 64) w.ring.release(n - 64);
  }
  const auto &bytes = w.memory->bytes;
  CHECK(std::all_of(bytes.begin() + (1 << 20), bytes.end(), [](char c) { return c == 0; }));
}

namespace {

// A telemetry plugin in another process. If `takes` is true, accepts the records that it is offered
// and stores their numbers and requests. Otherwise, accepts none.
struct Sink {
  std::vector<std::uint64_t> offered;
  std::vector<std::string> requests;
  std::uint32_t wants = BH_TELEMETRY_TEXTS;
  bool takes = true;

  static const bh_telemetry &table() {
    static constexpr bh_telemetry table{
        sizeof(bh_telemetry), 0,
        [](void *self, const bh_record *const *records, std::uint32_t n) -> std::uint32_t {
          auto &sink = *static_cast<Sink *>(self);
          for (std::uint32_t i = 0; i < n && sink.takes; ++i) {
            sink.offered.push_back(records[i]->number);
            sink.requests.emplace_back(bh::view(records[i]->request));
          }
          return sink.takes ? n : 0;
        },
        [](void *self) { return static_cast<Sink *>(self)->wants; }};
    return table;
  }
};

// The recorder of one gateway process. The ring outlives the recorder.
struct Process {
  std::unique_ptr<Reactor> reactor = std::move(*Reactor::create());
  Recorder recorder{*reactor};

  Process(RecordRing &ring, Sink &sink) {
    recorder.use_ring(&ring);
    recorder.add_sink(&Sink::table(), &sink, true);
  }
  void record(const std::string &params) {
    const std::string message =
        R"({"jsonrpc":"2.0","id":1,"method":"ping","params":)" + params + "}";
    mcp::Scan scan;
    mcp::ScanError error;
    REQUIRE(mcp::scan(message, &scan, &error));
    recorder.record({nullptr, 1, message, &scan, reactor->now_ns()},
                    {BH_OUTCOME_OK, reactor->now_ns(), 0, {}, {}, {}});
  }
};

}  // namespace

TEST_CASE("the next process offers unacknowledged records and continues their numbering") {
  World w;
  Sink sink;
  std::uint64_t next = 0;
  {
    Process first(w.ring, sink);
    CHECK(first.recorder.goes_first());
    for (int i = 0; i < 5; ++i) first.record("{\"n\":" + std::to_string(i) + "}");
    // The records are stored in the ring immediately, before the plugin has received any record.
    CHECK_FALSE(w.ring.empty());
    CHECK(sink.offered.empty());
    first.recorder.flush();
    REQUIRE(sink.offered.size() == 5);
    CHECK_FALSE(w.ring.empty());
    first.recorder.set_acknowledged(&sink, sink.offered[2]);
    next = sink.offered[4] + 1;
  }
  const std::vector<std::uint64_t> before = sink.offered;
  sink.offered.clear();
  sink.requests.clear();
  Process second(w.ring, sink);
  CHECK(second.recorder.earlier_below() == next);
  second.record(R"({"n":5})");
  second.recorder.flush();
  CHECK(sink.offered == std::vector<std::uint64_t>{before[2], before[3], before[4], next});
  CHECK(sink.requests ==
        std::vector<std::string>{R"({"n":2})", R"({"n":3})", R"({"n":4})", R"({"n":5})"});
  second.recorder.set_acknowledged(&sink, next + 1);
  CHECK(w.ring.empty());
}

TEST_CASE("when the ring is full, calls are refused or lost records leave a gap in the numbers") {
  for (const bool blocks : {true, false}) {
    World w;
    Sink sink;
    if (blocks) sink.wants |= BH_TELEMETRY_BLOCKS;
    std::uint64_t made = 0, kept = 0;
    {
      Process first(w.ring, sink);
      sink.takes = false;
      const std::string params = "{\"t\":\"" + std::string(5'000, 'x') + "\"}";
      while (!w.ring.nearly_full() && made < Recorder::max_waiting - 1) {
        CHECK_FALSE(first.recorder.must_refuse(0));
        first.record(params);
        ++made;
      }
      CHECK(first.recorder.must_refuse(0) == blocks);
      for (int i = 0; i < 2'000; ++i, ++made) first.record(params);
      for (const std::uint64_t number : w.left_numbers()) kept += number != 0 ? 1 : 0;
      CHECK(kept < made);
    }
    sink.takes = true;
    Process second(w.ring, sink);
    second.record("{}");
    second.recorder.flush();
    REQUIRE(sink.offered.size() == kept + 1);
    // The lost records have numbers, too, so the difference includes them.
    CHECK(sink.offered.back() - sink.offered.front() == made);
  }
}

TEST_CASE("record numbers that no gateway process can have assigned are ignored") {
  World w;
  Sink sink;
  sink.wants |= BH_TELEMETRY_EVENTS;  // put() creates events
  CHECK(w.put(1'000));
  CHECK(w.put(2'000));
  CHECK(w.put(1'500));
  CHECK(w.put(UINT64_MAX - 5));
  CHECK(w.put(2'001));
  w.ring.set_next_number(UINT64_MAX - 4);
  Process next(w.ring, sink);
  CHECK(next.recorder.earlier_below() > 1'600'000'000'000'000);  // taken from the clock
  CHECK(next.recorder.earlier_below() < UINT64_MAX / 2);
  next.record("{}");
  next.recorder.flush();
  REQUIRE(sink.offered.size() == 4);
  CHECK(std::vector<std::uint64_t>(sink.offered.begin(), sink.offered.end() - 1) ==
        std::vector<std::uint64_t>{1'000, 2'000, 2'001});
  next.recorder.set_acknowledged(&sink, sink.offered.back() + 1);
  CHECK(w.ring.empty());
}

TEST_CASE("records that a process wrote before the clock was set back are kept") {
  World w;
  Sink sink;
  sink.wants |= BH_TELEMETRY_EVENTS;  // put() creates events
  constexpr std::uint64_t day = 24ull * 3600 * 1'000'000;
  const std::uint64_t later = Process(w.ring, sink).recorder.earlier_below() + 7 * day;
  CHECK(w.put(later));
  CHECK(w.put(later + 1));
  w.ring.set_next_number(later + 3);
  Process next(w.ring, sink);
  CHECK(next.recorder.earlier_below() == later + 3);
  next.record("{}");
  next.recorder.flush();
  CHECK(sink.offered == std::vector<std::uint64_t>{later, later + 1, later + 3});
}

TEST_CASE("new records have higher numbers than waiting ones, also if the ring states another") {
  World w;
  Sink sink;
  sink.wants |= BH_TELEMETRY_EVENTS;  // put() creates events
  const std::uint64_t later = Process(w.ring, sink).recorder.earlier_below() + 1'000'000'000;
  CHECK(w.put(later));
  w.ring.set_next_number(UINT64_MAX);
  Process next(w.ring, sink);
  CHECK(next.recorder.earlier_below() == later + 1);
}

TEST_CASE("the ring is not used without a plugin in another process") {
  World w;
  Sink sink;
  auto reactor = std::move(*Reactor::create());
  Recorder local(*reactor);
  local.use_ring(&w.ring);
  local.add_sink(&Sink::table(), &sink);
  CHECK_FALSE(local.goes_first());
}

TEST_CASE("reading damaged memory does not crash") {
  World w;
  for (std::uint64_t n = 1; n < 50; ++n) CHECK(w.put(n, std::string(n * 10, 'x')));
  const std::uint64_t ends = w.memory->ends.load();
  std::uint64_t state = 99;
  World other;
  for (int i = 0; i < 500; ++i) {
    std::memcpy(other.memory->bytes.data(), w.memory->bytes.data(), 64u << 10);
    for (int change = 0; change < 8; ++change) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      other.memory->bytes[(state >> 33) % 20'000] = static_cast<char>(state >> 20);
    }
    other.memory->ends.store(i % 3 == 0 ? state : ends);
    std::size_t found = 0;
    RecordRing(*other.memory).for_each([&](const bh_record &r) {
      found += bh::view(r.request).size();  // the bytes must be readable
    });
    other.ring.release(25);
    other.put(1000);
    CHECK(found < (1u << 20));
  }
}
