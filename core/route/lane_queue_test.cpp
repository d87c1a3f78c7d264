// Tests the queue of a lane, without the lane.
#include "route/lane_queue.hpp"

#include "route/lane_part_fakes.hpp"

using namespace bulkhead;

namespace {

using Numbers = std::vector<std::uint64_t>;

struct Parts : LaneParts {
  CallTable calls;
  LaneQueue queue{lane, *this};

  // Queues a call with arguments of this many bytes. Returns the call's exchange, or null if the
  // call was not queued.
  Exchange *add(std::size_t bytes = 2) {
    const Scanned m(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}})");
    const std::string arguments(bytes, ' ');
    Call *call = calls.open();
    Exchange *e = table.open();
    e->call = call;
    call->exchange = e;
    lane.attach(*e);
    CallInHand hand{m.get(), {&lane, {}, m.scan.name}, arguments, {}};
    return queue.add(*e, hand) ? e : nullptr;
  }
  // Takes all calls. Returns the numbers of their exchanges; 0 if a call must not be sent.
  Numbers take_all() {
    Numbers out;
    while (!queue.empty()) {
      const Exchange *e = queue.take();
      out.push_back(e == nullptr ? 0 : e->id);
    }
    return out;
  }
};

}  // namespace

TEST_CASE("calls are taken in the order in which they were queued") {
  Parts p;
  Numbers ids;
  for (int i = 0; i < 3; ++i) ids.push_back(p.add()->id);
  CHECK(p.take_all() == ids);
}

TEST_CASE("a call beyond a limit of the queue fails with the name of the limit") {
  struct Case {
    std::string limit;
    std::uint32_t calls;
    std::uint64_t bytes;
    std::vector<std::size_t> sizes;  // of the calls; the last one exceeds the limit
  };
  const std::vector<Case> cases = {
      {"limits.queued_per_server", 2, 1'000'000, {2, 2, 2}},
      {"limits.write_queue_bytes", 9, 10, {1'000, 2}},
      {"limits.write_queue_bytes", 9, 200, {2, 2, 1'000}},
  };
  for (const Case &c : cases) {
    INFO(c.limit << " " << c.calls << " " << c.bytes);
    Parts p;
    p.own_limits.queued_per_server = c.calls;
    p.own_limits.write_queue_bytes = c.bytes;
    for (std::size_t i = 0; i + 1 < c.sizes.size(); ++i) CHECK(p.add(c.sizes[i]) != nullptr);
    CHECK(p.failures.empty());
    CHECK(p.add(c.sizes.back()) == nullptr);
    REQUIRE(p.failures.size() == 1);
    CHECK(p.failures[0].error_code == code::timeout);
    CHECK(p.failures[0].text.find("(" + c.limit + ")") != std::string::npos);
    CHECK(p.take_all().size() == c.sizes.size() - 1);
    CHECK(p.add(c.sizes.back()) != nullptr);  // one call may wait regardless of its size
  }
}

TEST_CASE("calls that have ended or were removed are not taken") {
  Parts p;
  Exchange *ended = p.add(), *removed = p.add(), *kept = p.add();
  const std::uint64_t id = kept->id;
  p.drop(*ended);
  SECTION("one by one") {
    p.queue.remove(removed->id);
    CHECK(p.take_all() == Numbers{0, id});
  }
  SECTION("all that have left the lane") {
    p.lane.detach(*removed);
    p.queue.remove_ended();
    CHECK(p.take_all() == Numbers{id});
  }
  SECTION("all") {
    p.queue.clear();
    CHECK(p.queue.empty());
  }
}

TEST_CASE("a call whose evaluation is out of date is not sent") {
  Parts p;
  p.add();
  p.may_send = false;
  CHECK(p.take_all() == Numbers{0});
}
