// Tests responses that are held until their records are committed.
#include "route/held_answers.hpp"

#include <catch2/catch.hpp>

#include "route/fakes.hpp"

using namespace bulkhead;

namespace {

struct World {
  std::unique_ptr<Reactor> loop = *Reactor::create();
  FakeTelemetry telemetry{BH_TELEMETRY_EVENTS | BH_TELEMETRY_COMMITS};
  Recorder recorder{*loop};
  std::vector<std::string> out;
  std::function<void()> inside;
  HeldAnswers held{recorder, *loop,
                   [this](const ReplyTo &reply, const bh_str *parts, std::uint32_t count,
                          std::uint32_t status, bool withheld) {
                     CHECK_FALSE(withheld);
                     out.push_back(std::to_string(reply.stream) + ":" + joined(parts, count) +
                                   (status != 0 ? " " + std::to_string(status) : ""));
                     call_once(inside);
                   }};

  World() { recorder.add_sink(&telemetry_table, &telemetry); }
  void record() {
    const Scanned message(R"({"jsonrpc":"2.0","id":1,"method":"ping"})");
    recorder.record({nullptr, 0, message.text, &message.scan, 0}, {});
  }
  void hold(std::uint64_t stream, const std::string &text, std::uint32_t status = 0) {
    const bh_str part = bh::str(text);
    held.hold({0, stream, 0}, &part, text.empty() ? 0 : 1, status, false);
  }
  void commit() {
    recorder.set_committed(&telemetry, recorder.barrier());
    held.release_committed();
  }
};

}  // namespace

TEST_CASE("a response waits for its records and for earlier responses") {
  World w;
  CHECK_FALSE(w.held.must_hold());
  w.record();
  REQUIRE(w.held.must_hold());
  w.hold(1, "first");
  w.recorder.set_committed(&w.telemetry, w.recorder.barrier());
  CHECK(w.held.must_hold());  // the first response is still held
  w.record();
  w.hold(2, "second");
  w.held.release_committed();
  CHECK(w.out == std::vector<std::string>{"1:first"});
  CHECK_FALSE(w.held.empty());
  w.commit();
  CHECK(w.out == std::vector<std::string>{"1:first", "2:second"});
  CHECK(w.held.empty());
  CHECK_FALSE(w.held.must_hold());
}

TEST_CASE("a request without a response is released without parts") {
  World w;
  w.record();
  w.hold(3, "", 202);
  w.commit();
  CHECK(w.out == std::vector<std::string>{"3: 202"});
}

TEST_CASE(
    "the response to a request that a client sends inside send() is queued behind the others") {
  World w;
  w.record();
  w.hold(1, "a");
  w.hold(2, "b");
  w.inside = [&] {
    CHECK(w.held.must_hold());
    w.hold(3, "c");
  };
  w.commit();
  CHECK(w.out == std::vector<std::string>{"1:a", "2:b", "3:c"});
}

TEST_CASE("exceeding the byte limit is reported, but responses are still held") {
  World w;
  w.record();
  const std::string large(HeldAnswers::max_bytes / 2 + 1, 'x');
  w.hold(1, large);
  CHECK_FALSE(w.held.full());
  w.hold(2, large);
  CHECK(w.held.full());
  w.commit();
  CHECK(w.out.size() == 2);
  CHECK_FALSE(w.held.full());
}

TEST_CASE("without a plugin that commits, no response is held") {
  World w;
  w.telemetry.needs = BH_TELEMETRY_EVENTS;
  w.record();
  CHECK_FALSE(w.held.must_hold());
}
