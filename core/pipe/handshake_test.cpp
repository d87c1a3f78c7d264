#include "pipe/handshake.hpp"

#include <catch2/catch.hpp>

#include <vector>

using namespace bulkhead;
using namespace bulkhead::pipe;

namespace {

using Answer = Handshake::Answer;
using Texts = std::vector<std::string>;

const std::string initialize = R"({"jsonrpc":"2.0","id":0,"method":"initialize"})";
const std::string initialized = R"({"jsonrpc":"2.0","method":"notifications/initialized"})";
const std::string accepted = R"({"jsonrpc":"2.0","id":0,"result":{}})";
const std::string rejected = R"({"jsonrpc":"2.0","id":0,"error":{"code":-1,"message":"no"}})";

struct Connection final : Ends {
  void to_client(std::string_view) override {}
  Result<void> open_lane(bh_lane) override { return {}; }
  Result<void> send(std::uint32_t, std::uint64_t, std::string_view text) override {
    if (full) return fail(BH_E_UNAVAILABLE, "it is ending");
    sent.emplace_back(text);
    return {};
  }
  void finish_lane() override {}
  void close_lane() override {}
  void hold_lane(bool) override {}
  void hold_client(bool) override {}
  void log(std::int32_t, std::string_view) override {}
  void done(std::string_view) override {}

  bool full = false;
  Texts sent;
};

struct World {
  RouteLimits limits;
  Handshake handshake{limits};
  Connection next;

  void send_initialize(std::uint64_t exchange, const std::string &text = initialize) {
    handshake.on_sent(BH_LANE_REQUEST, exchange, "\"initialize\"", text);
  }
  void send_initialized() { handshake.on_sent(BH_LANE_NOTIFICATION, 0, {}, initialized); }
  void complete() {
    send_initialize(1);
    handshake.on_answer(1, accepted);
    send_initialized();
  }
};

}  // namespace

TEST_CASE("an accepted handshake is repeated unchanged") {
  World w;
  w.send_initialize(1);
  w.handshake.on_sent(BH_LANE_REQUEST, 2, "\"ping\"", "{}");
  CHECK_FALSE(w.handshake.accepted());
  CHECK(w.handshake.on_answer(2, accepted) == Answer::of_client);
  CHECK_FALSE(w.handshake.accepted());
  CHECK(w.handshake.on_answer(1, accepted) == Answer::of_client);
  REQUIRE(w.handshake.accepted());
  w.handshake.repeat(w.next, 7);
  CHECK(w.next.sent == Texts{initialize});  // the client has not sent the notification yet
  w.send_initialized();
  w.handshake.repeat(w.next, 8);
  CHECK(w.next.sent == Texts{initialize, initialize, initialized});
}

TEST_CASE("only the response to the repeated handshake is withheld from the client") {
  World w;
  w.complete();
  w.handshake.repeat(w.next, 7);
  CHECK(w.handshake.on_answer(0, accepted) == Answer::of_client);
  CHECK(w.handshake.on_answer(1, accepted) == Answer::of_client);
  CHECK(w.handshake.on_answer(7, accepted) == Answer::of_repetition);
  CHECK(w.handshake.on_answer(7, accepted) == Answer::of_client);
  w.handshake.repeat(w.next, 8);
  CHECK(w.handshake.on_answer(8, rejected) == Answer::repetition_refused);
  w.handshake.repeat(w.next, 9);
  w.handshake.on_lost();
  CHECK(w.handshake.on_answer(9, accepted) == Answer::of_client);
  CHECK(w.handshake.accepted());
}

TEST_CASE("a handshake that was rejected, lost or too large is not repeated") {
  World w;
  w.complete();
  SECTION("rejected") {
    w.send_initialize(2);
    w.handshake.on_answer(2, rejected);
  }
  SECTION("lost") {
    w.send_initialize(2);
    w.handshake.on_lost();
    w.handshake.on_answer(2, accepted);
  }
  SECTION("too large") {
    w.send_initialize(2, std::string(w.limits.max_handshake_bytes + 1, ' '));
    w.handshake.on_answer(2, accepted);
  }
  CHECK_FALSE(w.handshake.accepted());
}

TEST_CASE("a new handshake must be confirmed again") {
  World w;
  w.complete();
  w.send_initialize(2);
  w.handshake.on_answer(2, accepted);
  w.handshake.repeat(w.next, 7);
  CHECK(w.next.sent == Texts{initialize});
  w.next.full = true;
  w.send_initialized();
  w.handshake.repeat(w.next, 8);  // repeats neither the request nor the notification
  CHECK(w.next.sent == Texts{initialize});
}
