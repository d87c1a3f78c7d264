#include "route/exchange.hpp"

#include <catch2/catch.hpp>
#include <set>

#include "route/protocol.hpp"
#include "route/splice.hpp"

using namespace bulkhead;

namespace {
constexpr std::uint64_t ms = 1'000'000;
}

TEST_CASE("an exchange's number is refused once it has ended, also when its slot is used again") {
  ExchangeTable table;
  Exchange *first = table.open();
  const std::uint64_t id = first->id;
  CHECK(table.get(id) == first);
  table.close(*first);
  CHECK(table.get(id) == nullptr);
  Exchange *second = table.open();
  CHECK(second == first);
  CHECK(second->id != id);
  CHECK(table.get(id) == nullptr);
  CHECK(table.get(0) == nullptr);
  CHECK(table.get(~0ull) == nullptr);
}

TEST_CASE("numbers stay below 2^53, whatever the slots have seen") {
  ExchangeTable table;
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 10'000; ++i) {
    Exchange *e = table.open();
    CHECK(e->id < (1ull << 53));
    CHECK(seen.insert(e->id).second);
    table.close(*e);
  }
}

TEST_CASE("a deadline never comes early, and at most two ticks late") {
  const std::uint64_t tick = ExchangeTable::tick_ms;
  for (const std::uint64_t timeout : {1ull, 49ull, 50ull, 1000ull, 60'000ull, 300'000ull}) {
    ExchangeTable table;
    const std::uint64_t start = 123'456'789 * ms + 7;
    Exchange *e = table.open();
    table.arm(*e, start, timeout);
    std::vector<std::uint64_t> due;
    std::uint64_t now = start;
    while (due.empty() && now < start + (timeout + 10 * tick) * ms) {
      now += tick * ms;
      table.expire(now, &due);
    }
    REQUIRE(due.size() == 1);
    CHECK(due[0] == e->id);
    CHECK(now - start >= timeout * ms);
    CHECK(now - start <= (timeout + 3 * tick) * ms);
    CHECK_FALSE(table.any_armed());
  }
}

TEST_CASE("disarmed and ended exchanges do not expire; after a long sleep all due ones do") {
  ExchangeTable table;
  Exchange *kept = table.open(), *ended = table.open(), *disarmed = table.open(),
           *later = table.open();
  for (Exchange *e : {kept, ended, disarmed}) table.arm(*e, 0, 100);
  table.arm(*later, 0, 10'000'000);
  table.close(*ended);
  table.disarm(*disarmed);
  std::vector<std::uint64_t> due;
  table.expire(3'600'000 * ms, &due);
  CHECK(due == std::vector<std::uint64_t>{kept->id});
  CHECK(table.any_armed());
}

TEST_CASE("arming again moves the deadline") {
  ExchangeTable table;
  Exchange *e = table.open();
  table.arm(*e, 0, 100);
  table.arm(*e, 0, 10'000);
  std::vector<std::uint64_t> due;
  table.expire(1'000 * ms, &due);
  CHECK(due.empty());
  table.expire(11'000 * ms, &due);
  CHECK(due.size() == 1);
}

TEST_CASE("the intrusive lists keep every member through removals in any order") {
  ExchangeTable table;
  LaneExchanges list;
  std::vector<Exchange *> all;
  for (int i = 0; i < 5; ++i) {
    all.push_back(table.open());
    list.push(*all.back());
  }
  for (const int i : {2, 4, 0}) list.remove(*all[static_cast<std::size_t>(i)]);
  std::vector<Exchange *> left;
  for (Exchange *e = list.head; e != nullptr; e = e->lane_next) left.push_back(e);
  CHECK(left == std::vector<Exchange *>{all[3], all[1]});
  CHECK(list.size == 2);
}

TEST_CASE("splicing replaces ranges in any order of calls and keeps all other bytes") {
  const std::string_view message = R"({"id":1,"params":{"name":"n","x":2}})";
  const mcp::Range id{6, 7}, name{25, 28};
  REQUIRE(id.in(message) == "1");
  REQUIRE(name.in(message) == "\"n\"");
  Splice splice(message);
  splice.replace(name, "\"long name\"");
  splice.replace(id, "77");
  splice.replace({}, "nothing");
  const bh_str *parts = splice.parts();
  std::string joined;
  for (std::uint32_t i = 0; i < splice.count(); ++i) joined += bh::view(parts[i]);
  CHECK(joined == R"({"id":77,"params":{"name":"long name","x":2}})");
}

namespace {

std::string joined(Splice *splice) {
  const bh_str *parts = splice->parts();
  std::string out;
  for (std::uint32_t i = 0; i < splice->count(); ++i) out += bh::view(parts[i]);
  return out;
}

}  // namespace

TEST_CASE("splicing inserts and removes, at both ends and beside what is replaced") {
  const std::string_view message = "0123456789";
  Splice splice(message);
  splice.insert(10, "end");
  splice.remove({8, 9});
  splice.replace({3, 5}, "XY");
  splice.insert(3, "a");  // before the replacement of the range that begins here
  splice.insert(3, "b");  // after the text that was inserted here before
  splice.insert(5, "c");
  splice.insert(0, "begin");
  splice.insert(6, {});
  CHECK(splice.ok());
  CHECK(joined(&splice) == "begin012abXYc5679end");

  Splice all(message);
  all.remove({0, 10});
  REQUIRE(all.parts() != nullptr);
  CHECK(all.count() == 0);
}

TEST_CASE("a splice keeps each of its edits, or fails as a whole") {
  std::string message;
  for (std::uint32_t i = 0; i < 2 * Splice::max_edits; ++i) message += static_cast<char>('A' + i);
  Splice full(message);
  std::string expected;
  for (std::uint32_t i = 0; i < Splice::max_edits; ++i) {
    full.replace({2 * i, 2 * i + 1}, "-");
    expected.append("-").append(message.substr(2 * i + 1, 1));
  }
  CHECK(joined(&full) == expected);
  full.insert(2 * Splice::max_edits, "one too many");
  CHECK_FALSE(full.ok());
  CHECK(full.parts() == nullptr);
  CHECK(full.count() == 0);
}

TEST_CASE("edits that overlap or lie outside of the message make the splice fail") {
  const std::string_view message = "0123456789";
  const auto fails = [&](mcp::Range first, mcp::Range second) {
    Splice one(message), other(message);
    one.replace(first, "x");
    one.replace(second, "y");
    other.replace(second, "y");
    other.replace(first, "x");
    CHECK(one.ok() == other.ok());
    return !one.ok();
  };
  CHECK(fails({2, 5}, {4, 6}));
  CHECK(fails({2, 5}, {2, 5}));
  CHECK(fails({2, 8}, {4, 6}));
  CHECK_FALSE(fails({2, 5}, {5, 6}));
  CHECK(fails({2, 5}, {9, 11}));
  for (const bool before : {true, false}) {
    Splice inside(message);
    if (before) inside.insert(3, "x");
    inside.remove({2, 5});
    if (!before) inside.insert(3, "x");
    CHECK(inside.parts() == nullptr);
  }
  Splice behind(message);
  behind.insert(11, "x");
  CHECK_FALSE(behind.ok());
}

TEST_CASE("ids of answers: digits, also in quotes, nothing else") {
  CHECK(parse_number("17") == 17);
  CHECK(parse_number("\"17\"") == 17);
  for (const char *bad : {"", "\"", "1.0", "-1", "1e3", "\"a\"", "99999999999999999999999", " 1"}) {
    CHECK(parse_number(bad) == 0);
  }
}

TEST_CASE("client capabilities survive parsing and composing") {
  const ClientCaps caps = parse_client_caps(
      R"({"roots":{"listChanged":true},"sampling":{"tools":{}},"elicitation":{"form":{},"url":{}}})");
  CHECK(caps == (cap::roots | cap::roots_changed | cap::sampling | cap::sampling_tools |
                 cap::elicitation | cap::elicitation_form | cap::elicitation_url));
  CHECK(parse_client_caps(compose_client_caps(caps)) == caps);
  CHECK(compose_client_caps(0) == "{}");
  CHECK(parse_client_caps(R"({"sampling":false,"roots":null})") == 0);
  CHECK(parse_client_caps("[]") == 0);
}

TEST_CASE("a cancellation is forwarded with its reason only") {
  const auto composed = [](const std::string &params) {
    const std::string m =
        R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":)" + params + "}";
    mcp::Scan scan;
    mcp::ScanError error;
    REQUIRE(mcp::scan(m, &scan, &error));
    const std::string text = compose_cancelled("77", m, scan);
    mcp::Scan again;
    REQUIRE(mcp::scan(text, &again, &error));
    CHECK(again.method == mcp::Method::notifications_cancelled);
    return std::string(again.params.in(text));
  };
  CHECK(composed(
            R"({"requestId":"a","reason":"no \u0022need\u0022","x":{"cmd":1},"_meta":{"y":1}})") ==
        R"({"requestId":77,"reason":"no \u0022need\u0022"})");
  CHECK(composed(R"({"requestId":1,"reason":{"cmd":1}})") == R"({"requestId":77})");
  CHECK(composed(R"({"requestId":1})") == R"({"requestId":77})");
}

TEST_CASE("log levels by name") {
  CHECK(parse_log_level("debug") == 0);
  CHECK(parse_log_level("emergency") == 7);
  CHECK(parse_log_level("Debug") == -1);
  CHECK(log_level_text(3) == "warning");
}
