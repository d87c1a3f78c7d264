#include "route/parked_inputs.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "mcp/scan.hpp"

using namespace bulkhead;
using Phase = ParkedInput::Phase;
using Kind = ParkedInputs::Due::Kind;

namespace {

constexpr std::uint64_t ms = 1'000'000;
constexpr std::uint64_t start = 1'000 * ms;

ParkedAsk ask(std::uint64_t number, std::string params = R"({"message":"Read?"})") {
  return {number, "elicitation/create", std::move(params), 5'000};
}

ParkedOwner owner(const std::string &principal, const std::string &connection = "c") {
  return {principal, "p", connection};
}

std::string responses(std::initializer_list<unsigned> keys, const char *action = "accept") {
  std::string out = "{";
  for (const unsigned key : keys) {
    out += (out.size() > 1 ? ",\"input-" : "\"input-") + std::to_string(key) + R"(":{"action":")" +
           action + "\"}";
  }
  return out + "}";
}

struct World {
  explicit World(const ParkedLimits &limits = {}) : inputs(limits, 3) {}

  ParkedInputs inputs;
  std::uint64_t now = start;
  std::uint64_t number = 0;

  std::uint64_t park(const std::string &principal = "alice", std::uint64_t call = 7,
                     std::uint64_t request = 1) {
    const auto parked = inputs.park(owner(principal), call, ask(101), now);
    REQUIRE(parked);
    inputs.wait(*parked, request);
    return *parked;
  }
  std::vector<ParkedInputs::Due> advance(std::uint64_t by_ms) {
    now += by_ms * ms;
    return inputs.due(now);
  }
  // Parks a call and closes its first round.
  void ask_first() {
    number = park();
    const auto due = advance(20);
    REQUIRE(due.size() == 1);
    REQUIRE(due[0].requests == std::vector<std::uint64_t>{1});
  }
  // Repeats the request. Returns "asks N" (N is the round), "waits" or "end TEXT". If the request
  // is rejected, returns the reason.
  std::string retry(std::uint32_t round, const std::string &answers, std::uint64_t request = 2,
                    std::string_view principal = "alice") {
    const auto result = inputs.retry(principal, {number, round}, request, answers, now);
    if (!result) return std::string(to_string(result.error()));
    delivered.clear();
    for (const auto &answer : result->answers) delivered.push_back(answer.ask);
    const ParkedInput &call = *inputs.find(number);
    if (call.phase() == Phase::asked) return "asks " + std::to_string(call.round());
    return call.phase() == Phase::ended ? "end " + call.end_text() : "waits";
  }
  std::vector<std::uint64_t> delivered;
};

const auto text_of = [](RetryFault fault) { return std::string(to_string(fault)); };

}  // namespace

TEST_CASE("parked inputs: asks within 20 ms are one round") {
  World w;
  w.number = w.park();
  CHECK(w.inputs.next_ns() == start + 20 * ms);
  CHECK(w.advance(10).empty());
  CHECK(w.inputs.add_ask(w.number, ask(102, ""), w.now).empty());
  CHECK(w.inputs.next_ns() == start + 20 * ms);  // counted from the first ask
  CHECK(w.advance(9).empty());
  const auto due = w.advance(1);
  REQUIRE(due.size() == 1);
  CHECK(due[0].kind == Kind::round);
  CHECK(due[0].number == w.number);
  CHECK(due[0].call == 7);
  CHECK(due[0].requests == std::vector<std::uint64_t>{1});
  CHECK(w.inputs.ticket(w.number) == ParkedTicket{w.number, 1});
  CHECK(w.inputs.find(w.number)->input_requests() ==
        R"({"input-1":{"method":"elicitation/create","params":{"message":"Read?"}},)"
        R"("input-2":{"method":"elicitation/create"}})");
  // A later ask waits for the next round.
  CHECK(w.inputs.add_ask(w.number, ask(103), w.now).empty());
  CHECK(w.advance(100).empty());
  CHECK(w.inputs.find(w.number)->input_requests().find("input-3") == std::string::npos);
  CHECK(w.retry(1, responses({1, 2})) == "waits");
  CHECK(w.delivered == std::vector<std::uint64_t>{101, 102});
  const auto next = w.advance(20);
  REQUIRE(next.size() == 1);
  CHECK(next[0].requests == std::vector<std::uint64_t>{2});
  CHECK(w.inputs.ticket(w.number).round == 2);
  CHECK(w.inputs.find(w.number)->input_requests().starts_with(R"({"input-3":)"));
}

TEST_CASE("parked inputs: answers go to the server once, and the end to the last request") {
  World w;
  w.ask_first();
  CHECK(w.retry(1, R"({"input-1":{"action":"accept"},"unknown":{"x":1}})") == "waits");
  CHECK(w.delivered == std::vector<std::uint64_t>{101});
  CHECK_FALSE(w.inputs.next_ns());  // a request waits: the call has its own deadline
  CHECK(w.inputs.end(w.number, "result", w.now) == std::vector<std::uint64_t>{2});
  CHECK(w.inputs.end(w.number, "again", w.now).empty());
  CHECK(w.inputs.find(w.number)->end_text() == "result");
}

TEST_CASE("parked inputs: the same answers join the call, other answers are rejected") {
  World w;
  w.ask_first();
  CHECK(w.retry(1, responses({1})) == "waits");
  const std::string again = R"( { "input-1" : { "action" : "\u0061ccept" } } )";
  CHECK(w.retry(1, again, 3) == "waits");
  CHECK(w.delivered.empty());  // the server has the answer
  CHECK(w.retry(1, responses({1}, "decline"), 4) == text_of(RetryFault::other_answers));
  CHECK(w.retry(1, "", 4) == text_of(RetryFault::other_answers));
  CHECK(w.retry(1, "[", 4) == text_of(RetryFault::other_answers));
  // The next round is sent to both waiting requests, and to a request that is repeated later.
  CHECK(w.inputs.add_ask(w.number, ask(104), w.now).empty());
  CHECK(w.retry(1, again, 5) == "waits");
  const auto due = w.advance(20);
  REQUIRE(due.size() == 1);
  CHECK(due[0].requests == std::vector<std::uint64_t>{2, 3, 5});
  CHECK(w.retry(1, again, 6) == "asks 2");
  CHECK(w.retry(1, responses({1}, "decline"), 6) == text_of(RetryFault::other_answers));
  CHECK(w.retry(2, responses({2})) == "waits");
  CHECK(w.retry(1, again, 6) == text_of(RetryFault::outdated));
  CHECK(w.inputs.end(w.number, "done", w.now) == std::vector<std::uint64_t>{2});
  CHECK(w.retry(2, responses({2}), 7) == "end done");
  CHECK(w.retry(2, responses({2}), 8) == "end done");
  CHECK(w.retry(2, responses({2}, "cancel"), 8) == text_of(RetryFault::other_answers));
  CHECK(w.retry(1, again, 8) == text_of(RetryFault::outdated));
  CHECK(w.retry(3, responses({2}), 8) == text_of(RetryFault::outdated));
  CHECK(w.retry(0, "", 8) == text_of(RetryFault::outdated));
}

TEST_CASE("parked inputs: answers for a part of a round leave the rest for the next round") {
  World w;
  w.number = w.park();
  CHECK(w.inputs.add_ask(w.number, ask(102), w.now).empty());
  CHECK(w.advance(20).size() == 1);
  CHECK(w.retry(1, responses({2})) == "waits");
  CHECK(w.delivered == std::vector<std::uint64_t>{102});
  CHECK(w.inputs.add_ask(w.number, ask(103), w.now).empty());
  CHECK(w.advance(20).size() == 1);
  const std::string asked = w.inputs.find(w.number)->input_requests();
  CHECK(asked.find("input-1") != std::string::npos);
  CHECK(asked.find("input-2") == std::string::npos);
  CHECK(asked.find("input-3") != std::string::npos);
}

TEST_CASE("parked inputs: without a known key the client is asked again, in the same round") {
  World w;
  w.ask_first();
  for (const char *none : {"", "{}", R"({"input-2":{}})", R"({"other":5})"}) {
    INFO(none);
    CHECK(w.retry(1, none) == "asks 1");
    CHECK(w.delivered.empty());
  }
  CHECK(w.inputs.next_ns() == w.now + 5'000 * ms);  // the time to answer is not extended
  CHECK(w.advance(4'999).empty());
  CHECK(w.retry(1, "{}") == "asks 1");
  const auto due = w.advance(1);
  REQUIRE(due.size() == 1);
  CHECK(due[0].kind == Kind::unanswered);
  CHECK(due[0].call == 7);
  CHECK(w.retry(1, responses({1})) == text_of(RetryFault::unknown_call));
  CHECK(w.inputs.size() == 0);
  CHECK(w.inputs.bytes() == 0);
}

TEST_CASE("parked inputs: malformed answers change nothing") {
  World w;
  w.number = w.park();
  CHECK(w.inputs.add_ask(w.number, ask(102), w.now).empty());
  CHECK(w.advance(20).size() == 1);
  for (const char *bad :
       {"[]", "null", "\"x\"", R"({"input-1":{},"input-2":5})", R"({"input-1":null})",
        R"({"input-1":[{}]})", R"({"input-1":{},"input-1":{}})",
        R"({"input-1":{},"\u0069nput-1":{}})"}) {
    INFO(bad);
    CHECK(w.retry(1, bad) == text_of(RetryFault::malformed));
  }
  CHECK(w.retry(1, responses({1, 2})) == "waits");
  CHECK(w.delivered == std::vector<std::uint64_t>{101, 102});
}

TEST_CASE("parked inputs: another principal and other numbers find no call") {
  World w;
  w.ask_first();
  for (const char *principal : {"", "bob", "alice "}) {
    CHECK(w.retry(1, responses({1}), 2, principal) == text_of(RetryFault::unknown_call));
  }
  const std::uint64_t real = w.number;
  for (const std::uint64_t other :
       {real + 1, real + (std::uint64_t{1} << 32), std::uint64_t{0}, ~std::uint64_t{0}}) {
    w.number = other;
    CHECK(w.retry(1, responses({1})) == text_of(RetryFault::unknown_call));
  }
  w.number = real;
  CHECK(w.retry(1, responses({1})) == "waits");
}

TEST_CASE("parked inputs: a client that gives up its last request gives up the call") {
  World w;
  w.number = w.park();
  CHECK_FALSE(w.inputs.leave(w.number, 99));  // not one of its requests
  SECTION("before it is asked") {
    CHECK(w.inputs.leave(w.number, 1));
  }
  SECTION("after its answers") {
    REQUIRE(w.advance(20).size() == 1);
    CHECK_FALSE(w.inputs.leave(w.number, 1));  // the request was answered
    CHECK(w.retry(1, responses({1})) == "waits");
    CHECK(w.retry(1, responses({1}), 3) == "waits");
    CHECK_FALSE(w.inputs.leave(w.number, 2));
    CHECK(w.inputs.leave(w.number, 3));
  }
  CHECK(w.inputs.forget(w.number).empty());
  CHECK(w.retry(1, responses({1})) == text_of(RetryFault::unknown_call));
  CHECK(w.inputs.size() == 0);
  CHECK_FALSE(w.inputs.next_ns());
}

TEST_CASE(
    "parked inputs: an end without an answer of the client is stored as long as it may answer") {
  World w;
  w.number = *w.inputs.park(owner("alice"), 7, {101, "elicitation/create", "", 90'000}, w.now);
  REQUIRE(w.advance(20).size() == 1);
  CHECK(w.inputs.call_of(w.number) == 7);
  w.inputs.remove_ask(w.number, 101);  // answered elsewhere
  CHECK(w.inputs.end(w.number, "done", w.now).empty());
  CHECK(w.inputs.call_of(w.number) == 0);
  CHECK(w.advance(89'999).empty());
  CHECK(w.retry(1, responses({1})) == "end done");
  CHECK(w.advance(1).size() == 1);
  CHECK(w.inputs.size() == 0);
}

TEST_CASE("parked inputs: withdrawn asks") {
  World w;
  w.number = w.park();
  w.inputs.remove_ask(w.number, 999);
  w.inputs.remove_ask(w.number, 101);
  CHECK(w.advance(20).empty());  // no empty round
  CHECK(w.inputs.find(w.number)->phase() == Phase::working);
  CHECK_FALSE(w.inputs.next_ns());
  CHECK(w.inputs.add_ask(w.number, ask(102), w.now).empty());
  CHECK(w.advance(20).size() == 1);
  w.inputs.remove_ask(w.number, 102);
  CHECK(w.inputs.add_ask(w.number, ask(103), w.now).empty());
  // The client's answers arrive after the ask was withdrawn. They are discarded, and the client's
  // request waits for the next round.
  CHECK(w.retry(1, responses({2})) == "waits");
  CHECK(w.delivered.empty());
  CHECK(w.advance(20).size() == 1);
  CHECK(w.inputs.find(w.number)->input_requests().starts_with(R"({"input-3":)"));
  // The server ends the call without waiting for an answer.
  CHECK(w.inputs.end(w.number, "early", w.now).empty());
  CHECK(w.retry(2, responses({3})) == "end early");
}

TEST_CASE("parked inputs: stored ends are forgotten after a time") {
  World w;
  w.ask_first();
  CHECK(w.retry(1, responses({1})) == "waits");
  constexpr std::size_t large = 3u << 20;
  w.inputs.end(w.number, std::string(large, 'x'), w.now);
  CHECK(w.retry(1, responses({1})) == "end " + std::string(large, 'x'));
  CHECK(w.inputs.bytes() > large);
  CHECK(w.advance(59'999).empty());
  const auto due = w.advance(1);
  REQUIRE(due.size() == 1);
  CHECK(due[0].kind == Kind::forgotten);
  CHECK(due[0].call == 0);
  CHECK(w.retry(1, responses({1})) == text_of(RetryFault::unknown_call));
  CHECK(w.inputs.bytes() == 0);
}

TEST_CASE("parked inputs: a request that waits for the end of an asked call receives it") {
  World w;
  w.ask_first();
  w.inputs.wait(w.number, 9);  // the call has ended, but its end is not known yet
  CHECK(w.advance(5'000).empty());
  CHECK_FALSE(w.inputs.next_ns());
  CHECK(w.inputs.end(w.number, "result", w.now) == std::vector<std::uint64_t>{9});
  CHECK(w.inputs.next_ns() == w.now + ParkedInputs::rejoin_ms * ms);
}

TEST_CASE("parked inputs: changed rules remove stored ends, but no call that has not ended") {
  World w;
  w.ask_first();
  w.inputs.forget_ends();
  CHECK(w.retry(1, responses({1})) == "waits");
  w.inputs.forget_ends();
  w.inputs.end(w.number, "the end", w.now);
  CHECK(w.retry(1, responses({1})) == "end the end");
  w.inputs.forget_ends();
  CHECK(w.retry(1, responses({1})) == text_of(RetryFault::unknown_call));
  CHECK(w.inputs.bytes() == 0);
}

TEST_CASE("parked inputs: an end that does not fit is replaced by an error: the call has run") {
  World w({.bytes_per_principal = 10'000});
  const std::string text = "\"result\":" + std::string(9'500, '1');
  SECTION("the client has not answered") {
    w.ask_first();
    CHECK(w.inputs.end(w.number, text, w.now).empty());
  }
  SECTION(
      "the client has answered: its request gets the end, and only the stored one is replaced") {
    w.ask_first();
    CHECK(w.retry(1, responses({1})) == "waits");
    CHECK(w.inputs.end(w.number, text, w.now) == std::vector<std::uint64_t>{2});
  }
  const std::string end = w.retry(1, responses({1}), 3);
  CHECK(end.starts_with(R"(end "error":{"code":-32603,"message":"the call has run, but its )"
                        R"(response of 9509 bytes was too large)"));
  CHECK(w.retry(1, responses({1}), 4) == end);
  CHECK(w.inputs.bytes() < 2'000);
  // A smaller end fits. An older stored end is removed to make room, but no parked call is.
  const std::uint64_t large = w.number, other = w.park("alice", 8, 5);
  REQUIRE(w.advance(20).size() == 1);
  w.number = w.park("alice", 9, 6);
  REQUIRE(w.advance(20).size() == 1);
  const std::string fits = "\"result\":" + std::string(8'400, '2');
  CHECK(w.inputs.end(w.number, fits, w.now).empty());
  CHECK(w.retry(1, responses({1}), 7) == "end " + fits);
  CHECK(w.inputs.find(other)->phase() == Phase::asked);
  CHECK(w.inputs.find(large) == nullptr);
}

TEST_CASE("parked inputs: requests, asks and rounds of one call are limited") {
  World w;
  w.number = w.park();
  for (std::size_t i = 1; i < ParkedInput::max_asks; ++i) {
    CHECK(w.inputs.add_ask(w.number, ask(200 + i), w.now).empty());
  }
  CHECK(w.inputs.add_ask(w.number, ask(300), w.now).find("16 open") != std::string::npos);
  CHECK(w.advance(20).size() == 1);
  CHECK(w.retry(1, responses({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})) == "waits");
  for (std::uint64_t request = 3; request < 2 + ParkedInput::max_waiting; ++request) {
    CHECK(w.retry(1, responses({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}), request) ==
          "waits");
  }
  CHECK(w.retry(1, responses({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}), 90) ==
        text_of(RetryFault::too_many));
  // A server that never stops asking reaches the limit on rounds.
  unsigned key = 17;
  for (std::uint32_t round = 2; round <= ParkedInput::max_rounds; ++round, ++key) {
    REQUIRE(w.inputs.add_ask(w.number, ask(400), w.now).empty());
    REQUIRE(w.advance(20).size() == 1);
    REQUIRE(w.retry(round, responses({key})) == "waits");
  }
  CHECK(w.inputs.add_ask(w.number, ask(400), w.now).find("100 rounds") != std::string::npos);
  CHECK(w.inputs.end(w.number, "", w.now).size() == 1);
  CHECK_FALSE(w.inputs.add_ask(w.number, ask(400), w.now).empty());
}

TEST_CASE("parked inputs: 10,000 calls of one principal leave room for the others") {
  World w({.calls = 300, .calls_per_principal = 100});
  std::size_t parked = 0;
  std::string why;
  for (std::uint64_t call = 1; call <= 10'000; ++call) {
    const auto result = w.inputs.park(owner("mallory"), call, ask(call), w.now);
    parked += result ? 1 : 0;
    if (!result) why = result.error();
  }
  CHECK(parked == 100);
  CHECK(why == "too many parked calls of this client (limit: 100)");
  CHECK(w.inputs.size_of("mallory") == 100);
  for (int i = 0; i < 250; ++i) w.park("user" + std::to_string(i), 100'000);
  // At the limit on all calls, the largest principal loses its oldest calls.
  CHECK(w.inputs.size() == 300);
  CHECK(w.inputs.size_of("mallory") == 50);
  std::vector<std::uint64_t> evicted;
  for (const auto &due : w.advance(20)) {
    if (due.kind == Kind::evicted) evicted.push_back(due.call);
  }
  REQUIRE(evicted.size() == 50);
  CHECK(evicted.front() == 1);
  CHECK(evicted.back() == 50);
  CHECK(w.inputs.park(owner("mallory"), 1, ask(1), w.now).error() ==
        "too many parked calls (limit: 300)");
  const auto due = w.advance(5'000);
  CHECK(due.size() == 300);
  CHECK(w.inputs.size() == 0);
  CHECK(w.inputs.bytes() == 0);
}

TEST_CASE(
    "parked inputs: a connection with many calls cannot keep other connections from parking") {
  World w({.calls_per_principal = 10});
  const auto park = [&w](const std::string &connection, std::uint64_t call,
                         const std::string &peer = "p") {
    return w.inputs.park({"token", peer, connection}, call, ask(call), w.now);
  };
  const auto evicted = [&w] {
    std::vector<std::uint64_t> out;
    for (const auto &due : w.inputs.due(w.now)) {
      if (due.kind == Kind::evicted) out.push_back(due.call);
    }
    return out;
  };
  SECTION("on one connection") {
    std::vector<std::uint64_t> numbers;
    for (std::uint64_t call = 1; call <= 10; ++call) numbers.push_back(*park("mallory", call));
    CHECK_FALSE(park("mallory", 11));
    CHECK(evicted().empty());
    w.number = *park("bob", 100);
    CHECK(w.inputs.next_ns() == 0);  // the call must be ended at once
    CHECK(evicted() == std::vector<std::uint64_t>{1});
    CHECK_FALSE(park("mallory", 12));
    CHECK(park("bob", 101));
    CHECK(evicted() == std::vector<std::uint64_t>{2});
    // The clients get the reason, and bob is not affected.
    const std::uint64_t bobs = std::exchange(w.number, numbers[0]);
    CHECK(w.retry(1, responses({1}), 2, "token") == text_of(RetryFault::evicted));
    CHECK(w.retry(1, responses({1}), 2, "bob") != text_of(RetryFault::other_answers));
    w.number = bobs;
    w.advance(20);
    CHECK(w.retry(1, responses({1}), 3, "token") == "waits");
  }
  SECTION("connections with equal numbers of calls do not evict each other's calls") {
    for (std::uint64_t call = 1; call <= 300; ++call) park("c" + std::to_string(call % 3), call);
    CHECK(evicted().empty());
    CHECK(w.inputs.size_of("token") == 10);
  }
  SECTION("calls whose client waits for the server are evicted last") {
    w.number = *park("mallory", 1);
    w.advance(20);
    CHECK(w.retry(1, responses({1}), 2, "token") == "waits");
    for (std::uint64_t call = 2; call <= 10; ++call) park("mallory", call);
    w.advance(20);
    for (std::uint64_t call = 101; call <= 105; ++call) park("bob", call);
    CHECK(evicted() == std::vector<std::uint64_t>{2, 3, 4, 5, 6});
  }
  SECTION("with a connection for each call, it can evict, but not prevent") {
    for (std::uint64_t call = 1; call <= 100; ++call) {
      CHECK(park("c" + std::to_string(call), call));
    }
    CHECK(evicted().size() == 90);
    CHECK(park("bob", 101));
    CHECK(evicted() == std::vector<std::uint64_t>{91});
    for (std::uint64_t call = 102; call <= 110; ++call) {
      CHECK(park("c" + std::to_string(call), call));
    }
    CHECK(evicted().size() == 9);
    CHECK(w.inputs.call_of(w.number) == 0);
  }
  SECTION("another peer has its part, however many connections the first one has") {
    for (std::uint64_t call = 1; call <= 10; ++call) park("c" + std::to_string(call), call);
    for (std::uint64_t call = 101; call <= 105; ++call) CHECK(park("b", call, "other"));
    CHECK(evicted() == std::vector<std::uint64_t>{1, 2, 3, 4, 5});
    for (std::uint64_t call = 11; call <= 20; ++call) CHECK(park("c" + std::to_string(call), call));
    CHECK(evicted().size() == 10);
    for (std::uint64_t call = 201; call <= 300; ++call) park("b2", call, "other");
    CHECK(w.inputs.size_of("token") == 10);
  }
}

TEST_CASE("parked inputs: bytes and open asks are limited per principal and peer as well") {
  World w({.bytes_per_principal = 100'000});
  const std::string large = R"({"message":")" + std::string(30'000, 'x') + "\"}";
  const auto park = [&w](const std::string &connection, std::uint64_t call, std::string params) {
    return w.inputs.park({"token", "p", connection}, call, ask(call, std::move(params)), w.now);
  };
  SECTION("bytes") {
    for (std::uint64_t call = 1; call <= 3; ++call) REQUIRE(park("mallory", call, large));
    const auto more = park("mallory", 4, large);
    REQUIRE_FALSE(more);
    CHECK(more.error() == "too many bytes of parked calls of this client (limit: 100000)");
    const auto bobs = park("bob", 100, large);
    REQUIRE(bobs);
    CHECK(w.inputs.call_of(*bobs) == 100);
    // The second ask of a call makes room as well. Its own call is not evicted.
    CHECK(w.inputs.add_ask(*bobs, ask(101, large.substr(0, 20'000)), w.now).empty());
    CHECK(w.inputs.add_ask(*bobs, ask(102, large), w.now).find("too many bytes") !=
          std::string::npos);
    CHECK(w.inputs.call_of(*bobs) == 100);
    CHECK(w.inputs.bytes() <= 100'000);
    // Other principals are not affected.
    CHECK(w.inputs.park(owner("alice"), 8, ask(1, large), w.now));
  }
  SECTION("asks") {
    w.inputs.limit_asks(4);
    const auto mallorys = park("mallory", 1, "{}");
    for (std::uint64_t n = 2; n <= 4; ++n) {
      CHECK(w.inputs.add_ask(*mallorys, ask(n), w.now).empty());
    }
    CHECK(w.inputs.add_ask(*mallorys, ask(5), w.now) ==
          "too many open requests for input of this client (limit: 4)");
    CHECK(w.inputs.park({"token", "another peer", "c"}, 7, ask(1), w.now));
    CHECK(park("bob", 100, "{}"));
    CHECK(w.inputs.find(*mallorys) == nullptr);
    CHECK(w.inputs.size_of("token") == 2);
  }
}

TEST_CASE("parked inputs: stored ends make room for calls, those of the largest client first") {
  World w({.calls = 4, .calls_per_principal = 3});
  const auto park = [&w](const std::string &principal, std::uint64_t call) {
    return w.inputs.park(owner(principal), call, ask(1), w.now);
  };
  const std::uint64_t first = *park("", 1), second = *park("", 2), third = *park("", 3),
                      bobs = *park("bob", 4);
  CHECK_FALSE(park("", 5));
  w.inputs.end(bobs, "t", w.now);
  CHECK_FALSE(park("", 5));  // bob's end belongs to another principal
  CHECK(w.inputs.find(bobs) != nullptr);
  w.inputs.end(second, "s", w.now);
  w.inputs.end(third, "f", w.now);
  CHECK(park("", 5));
  CHECK(w.inputs.find(second) == nullptr);
  CHECK(w.inputs.find(third) != nullptr);
  CHECK(park("carol", 6));  // the limit on all calls is reached: the largest principal is ""
  CHECK(w.inputs.find(third) == nullptr);
  CHECK(w.inputs.find(bobs) != nullptr);
  CHECK(w.inputs.call_of(first) == 1);
}

TEST_CASE("parked inputs: the memory of all calls is limited") {
  World w({.bytes = 10'000});
  w.number = w.park();
  const std::string large = R"({"message":")" + std::string(9'000, 'x') + "\"}";
  CHECK(w.inputs.add_ask(w.number, ask(102, large), w.now).empty());
  CHECK(w.inputs.add_ask(w.number, ask(103, large), w.now) ==
        "too many bytes of parked calls (limit: 10000)");
  CHECK(w.inputs.bytes() > 9'000);
  CHECK(w.advance(20).size() == 1);
  CHECK(w.retry(1, responses({1, 2})) == "waits");
  CHECK(w.inputs.bytes() < 1'000);  // the texts of answered asks are freed
  CHECK(w.inputs.park(owner("bob"), 8, ask(1), w.now));
}

TEST_CASE("parked inputs: events come in the order of their times") {
  World w;
  const std::uint64_t first = w.park("a", 1);
  w.now += 5 * ms;
  const std::uint64_t second = w.park("b", 2);
  const auto due = w.advance(60'000);
  // Only the two rounds are due. No answer is overdue yet, because the time for an answer starts
  // when the round is closed.
  REQUIRE(due.size() == 2);
  CHECK(due[0].number == first);
  CHECK(due[1].number == second);
  CHECK(due[0].kind == Kind::round);
}

TEST_CASE("parked inputs: tickets have one form") {
  const ParkedTicket ticket{4'503'599'627'370'496, 12};
  CHECK(ticket.text() == "4503599627370496.12");
  CHECK(ParkedTicket::read(ticket.text()) == ticket);
  for (const char *bad : {"", ".", "1", "1.", ".1", "1.1 ", " 1.1", "01.1", "1.01", "+1.1", "-1.1",
                          "1.1.1", "1.4294967296", "18446744073709551616.1", "1,1", "0x1.1"}) {
    INFO(bad);
    CHECK_FALSE(ParkedTicket::read(bad));
  }
}
