#include "pipe/backlog.hpp"

#include <catch2/catch.hpp>

#include "pipe/client_hold.hpp"

using namespace bulkhead;
using namespace bulkhead::pipe;

namespace {

using Exchanges = std::vector<std::uint64_t>;

struct World {
  RouteLimits limits;
  Backlog backlog{limits};
  ClientHold hold{limits};

  World() {
    limits.max_pending = 4;
    limits.max_pending_bytes = 1'000;
    limits.max_waiting_bytes = 10;
    limits.max_questions = 2;
    limits.max_question_id = 8;
  }
  std::uint64_t add(std::string_view id = "1", std::string_view method = "\"m\"") {
    Line line;
    line.id = id;
    line.method = method;
    return backlog.add(line);
  }
  bool held() {
    hold.update(backlog);
    return hold.held();
  }
};

std::string question(std::string_view id) {
  return R"({"jsonrpc":"2.0","id":)" + std::string(id) + R"(,"method":"ping"})";
}

}  // namespace

TEST_CASE("requests are pending until they are forgotten, and limited in number and bytes") {
  World w;
  const std::uint64_t first = w.add("1"), second = w.add("\"two\"", "\"tools/call\"");
  CHECK(first != second);
  CHECK(w.backlog.find(second)->id == "\"two\"");
  CHECK(w.backlog.find(second)->method == "\"tools/call\"");
  CHECK(w.backlog.find(0) == nullptr);
  w.add();
  w.add();
  CHECK(w.add() == 0);
  w.backlog.forget(first);
  w.backlog.forget(first);
  CHECK(w.backlog.pending() == 3);
  const std::size_t left = w.limits.max_pending_bytes - w.backlog.pending_bytes();
  CHECK(w.add(std::string(left, '1'), "m") == 0);
  CHECK(w.add(std::string(left - 1, '1'), "m") != 0);
  CHECK(w.backlog.pending_bytes() == w.limits.max_pending_bytes);
}

TEST_CASE("a request that waits for a connection does not count as sent") {
  World w;
  const std::uint64_t a = w.add(), b = w.add(), c = w.add();
  CHECK(w.backlog.keep(1, b, "b"));
  CHECK(w.backlog.sent() == Exchanges{a, c});
  w.backlog.take_first();
  CHECK(w.backlog.sent() == Exchanges{a, b, c});
  CHECK_FALSE(w.backlog.idle());
  for (const std::uint64_t exchange : {a, b, c}) w.backlog.forget(exchange);
  CHECK(w.backlog.idle());
}

TEST_CASE("queued messages keep their order, even after a failed send") {
  World w;
  CHECK(w.backlog.keep(1, 1, "a"));
  CHECK(w.backlog.keep(2, 0, "bc"));
  CHECK_FALSE(w.backlog.keep(1, 2, "12345678"));
  CHECK(w.backlog.keep(1, 3, "1234567"));
  CHECK(w.backlog.waiting_bytes() == w.limits.max_waiting_bytes);
  const Backlog::Waiting first = w.backlog.take_first();
  CHECK(first.text == "a");
  CHECK(w.backlog.waiting_bytes() == 9);
  CHECK(w.backlog.keep(first.kind, first.exchange, first.text));
  w.backlog.move_last_to_front();
  std::string texts;
  for (const Backlog::Waiting &message : w.backlog.take_waiting()) texts += message.text + " ";
  CHECK(texts == "a bc 1234567 ");
  CHECK(w.backlog.waiting_bytes() == 0);
}

TEST_CASE(
    "a response must match a request on this connection, and the oldest requests are dropped") {
  World w;
  w.backlog.note_question(question("1"));
  w.backlog.note_question(question("\"2\""));
  CHECK_FALSE(w.backlog.take_question("2"));  // a number is a different token
  w.backlog.note_question(question("3"));
  CHECK_FALSE(w.backlog.take_question("1"));
  CHECK(w.backlog.take_question("\"2\""));
  CHECK_FALSE(w.backlog.take_question("\"2\""));
  w.backlog.note_question(question("123456789"));                // the ID is too long
  w.backlog.note_question(R"({"jsonrpc":"2.0","method":"n"})");  // a notification
  CHECK_FALSE(w.backlog.take_question("123456789"));
  CHECK_FALSE(w.backlog.take_question(""));
  CHECK(w.backlog.take_question("3"));
  w.backlog.note_question(question("4"));
  w.backlog.forget_questions();
  CHECK_FALSE(w.backlog.take_question("4"));
}

TEST_CASE("reaching any limit pauses the client until half of the limit is free") {
  World w;
  CHECK_FALSE(w.held());
  SECTION("pending requests") {
    Exchanges added;
    for (int i = 0; i < 4; ++i) {
      CHECK_FALSE(w.held());
      added.push_back(w.add());
    }
    CHECK(w.held());
    w.backlog.forget(added[0]);
    w.backlog.forget(added[1]);
    CHECK(w.held());
    w.backlog.forget(added[2]);
  }
  SECTION("their ids") {
    const std::uint64_t a = w.add(std::string(300, '1'), ""), b = w.add(std::string(200, '1'), "");
    CHECK(w.held());
    w.backlog.forget(b);
    CHECK(w.held());
    w.backlog.forget(a);
  }
  SECTION("messages that wait") {
    w.backlog.keep(2, 0, "1234");
    CHECK_FALSE(w.held());
    w.backlog.keep(2, 0, "1");
    CHECK(w.held());
    w.backlog.take_first();
  }
  SECTION("answers that the route makes") {
    CHECK(w.hold.add_own_answer(w.limits.max_own_bytes - 1));
    CHECK_FALSE(w.held());
    CHECK_FALSE(w.hold.add_own_answer(1));
    CHECK(w.held());
    w.hold.own_answers_taken();
  }
  SECTION("the lane") {
    w.hold.set_lane_full(true);
    CHECK(w.held());
    w.hold.set_lane_full(false);
  }
  CHECK(w.hold.update(w.backlog));  // the first call reports the change
  CHECK_FALSE(w.hold.update(w.backlog));
  CHECK_FALSE(w.hold.held());
}
