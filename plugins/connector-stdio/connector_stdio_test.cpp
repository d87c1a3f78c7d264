// Tests messages to and from a child process.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "connector-stdio/test_up.hpp"

using namespace connector_stdio;

TEST_CASE("a host without a required extension is rejected with a reason") {
  bh::testing::FakeHost host;
  ConnectorStdio plugin(host.host());
  bh_error error = bh::make_error();
  REQUIRE(plugin.configure(bh::str("{}"), &error) == BH_E_UNSUPPORTED);
  REQUIRE(bh::text(error).find("bh.host.connector/1") != std::string_view::npos);
  bh::testing::FakeHost without_children;
  bh_limits bounds = bh::testing::limits();
  bh_host_connector table{};
  table.limits = &bounds;
  without_children.add_ext(BH_EXT_HOST_CONNECTOR, &table);
  without_children.add_ext(BH_EXT_HOST_SPAWN, nullptr);
  ConnectorStdio other(without_children.host());
  REQUIRE(other.configure(bh::str("{}"), &error) == BH_E_UNSUPPORTED);
  REQUIRE(bh::text(error).find("bh.host.spawn/1") != std::string_view::npos);
  REQUIRE(plugin.get_ext("bh.connector/1") != nullptr);
  REQUIRE(plugin.get_ext("bh.connector/12") == nullptr);
}

TEST_CASE("messages are echoed in order, with several per event loop iteration") {
  TestUp up;
  up.open(1, "echo");
  for (int i = 0; i < 100; ++i) {
    REQUIRE(up.send(1, {"{\"id\":", std::to_string(i), "}"}) == BH_OK);
  }
  REQUIRE(up.wait_messages(1, 100));
  for (int i = 0; i < 100; ++i) {
    REQUIRE(up.lanes[1].messages[static_cast<std::size_t>(i)] ==
            "{\"id\":" + std::to_string(i) + "}");
  }
  up.close(1);
  REQUIRE(up.wait_closed(1));
  REQUIRE(up.lanes[1].closed == 1);
  REQUIRE(up.lanes[1].downs.empty());
}

TEST_CASE("a message with newlines arrives as one line") {
  TestUp up;
  up.open(1, "echo");
  REQUIRE(up.send(1, {"{\r\n  \"id\":\n", "1\n}"}) == BH_OK);
  REQUIRE(up.send(1, {"{2}"}) == BH_OK);
  REQUIRE(up.wait_messages(1, 2));
  REQUIRE(up.lanes[1].messages[0] == "{    \"id\": 1 }");
  REQUIRE(up.lanes[1].messages[1] == "{2}");
}

TEST_CASE("large messages between small messages are transferred in both directions") {
  bh_limits limits = bh::testing::limits();
  limits.write_queue_bytes = 8u << 20;
  TestUp up(limits);
  up.open(1, "echo");
  std::string big(2'000'000, 'x');
  const bool pretty = GENERATE(false, true);
  if (pretty) big[1'000'000] = '\n';
  REQUIRE(up.send(1, {"{before}"}) == BH_OK);
  REQUIRE(up.send(1, {"{\"a\":\"", big, "\"}"}) == BH_OK);
  REQUIRE(up.send(1, {"{after}"}) == BH_OK);
  REQUIRE(up.wait_messages(1, 3));
  if (pretty) big[1'000'000] = ' ';
  REQUIRE(up.lanes[1].messages[0] == "{before}");
  REQUIRE(up.lanes[1].messages[1] == "{\"a\":\"" + big + "\"}");
  REQUIRE(up.lanes[1].messages[2] == "{after}");
}

TEST_CASE("lines that are not messages are ignored, counted, sanitized and logged once") {
  TestUp up;
  up.open(1, "banner");
  up.send(1, {"{1}"});
  REQUIRE(up.wait_messages(1, 1));
  REQUIRE(up.lanes[1].messages[0] == "{1}");
  REQUIRE(up.host.metric("ignored_lines") == 2);
  REQUIRE(up.host.logged("Server v1 listening on stdio"));
  REQUIRE_FALSE(up.host.logged("ready?"));
  REQUIRE(up.lanes[1].downs.empty());
}

TEST_CASE("if a child prints other text instead of messages, the error contains this text") {
  TestUp up;
  SECTION("and the child exits") {
    up.open(1, "usage", "3");
    REQUIRE(up.wait_down(1));
    CHECK(up.lanes[1].downs[0].first == BH_E_UNAVAILABLE);
    CHECK(up.lanes[1].downs[0].second ==
          "server \"weather\" exited with status 3; it printed \"usage: server PORT\" to standard "
          "output, which must carry only MCP messages");
  }
  SECTION("and the child keeps running without a response") {
    up.open(1, "usage", "");
    REQUIRE(up.wait_down(1));
    CHECK(up.lanes[1].downs[0].first == BH_E_TIMEOUT);
    CHECK(up.lanes[1].downs[0].second ==
          "server \"weather\" did not respond within 1 s; it printed \"usage: server PORT\" to "
          "standard output, which must carry only MCP messages");
  }
  SECTION("unless the child has also sent a message") {
    up.open(1, "usage-message", "3");
    REQUIRE(up.wait_down(1));
    CHECK(up.lanes[1].downs[0].second == "server \"weather\" exited with status 3");
  }
  up.close(1);
  REQUIRE(up.wait_closed(1));
}

TEST_CASE("a message over the limit closes the lane with a reason") {
  bh_limits limits = bh::testing::limits();
  limits.message_bytes = 100'000;
  TestUp up(limits);
  up.open(1, "big", "200000");
  REQUIRE(up.wait_down(1));
  REQUIRE(up.lanes[1].downs[0].first == BH_E_PROTOCOL);
  REQUIRE(up.lanes[1].downs[0].second ==
          "server \"weather\" sent a message of more than 100000 bytes (limits.message_bytes)");
  up.close(1);
  REQUIRE(up.wait_closed(1));
}

TEST_CASE("the queue of a child that does not read becomes full; other children are unaffected") {
  TestUp up;
  up.open(1, "deaf");
  up.open(2, "echo");
  const std::string text = "{" + std::string(50'000, 'q') + "}";
  bh_status status = BH_OK;
  std::string why;
  std::size_t taken = 0;
  for (; taken < 100 && status == BH_OK; ++taken) {
    status = up.send(1, {text}, &why);
    up.host.turn(0);
  }
  REQUIRE(status == BH_E_LIMIT);
  REQUIRE(why == "server \"weather\" reads too slowly: its queue is full");
  REQUIRE(taken * text.size() > up.limits.write_queue_bytes);
  REQUIRE(up.send(2, {"{2}"}) == BH_OK);
  REQUIRE(up.wait_messages(2, 1));
  REQUIRE(up.lanes[1].downs.empty());
  up.close(1);
  REQUIRE(up.wait_closed(1));
}

TEST_CASE("the child gets only the base environment and the configured variables") {
  ::setenv("BULKHEAD_TEST_SECRET", "do-not-leak", 1);
  ::setenv("LANG", "C.UTF-8", 1);
  ::setenv("USER", "() { :; }", 1);
  TestUp up;
  up.open(1, "env", "", R"(,"env":{"WEATHER_KEY":"k 1=2","TERM":"dumb"})");
  REQUIRE(up.host.run_until(
      [&] { return !up.lanes[1].messages.empty() && up.lanes[1].messages.back() == "{end}"; },
      20'000));
  std::vector<std::string> names;
  for (const std::string &m : up.lanes[1].messages) {
    const std::string_view entry = std::string_view(m).substr(1, m.size() - 2);
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string name(entry.substr(0, equals));
    names.push_back(name);
    if (name == "WEATHER_KEY") CHECK(entry == "WEATHER_KEY=k 1=2");
    if (name == "TERM") CHECK(entry == "TERM=dumb");
    if (name == "PATH") CHECK(entry.substr(5) == std::getenv("PATH"));
  }
  std::vector<std::string> expected{"TERM", "WEATHER_KEY"};
  for (const char *name : {"HOME", "LANG", "LOGNAME", "PATH", "SHELL"}) {
    if (std::getenv(name) != nullptr) expected.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  std::sort(expected.begin(), expected.end());
  REQUIRE(names == expected);
  ::unsetenv("USER");
  ::unsetenv("BULKHEAD_TEST_SECRET");
}

TEST_CASE("arguments are passed unchanged, without expansion") {
  TestUp up;
  up.open_json(1, std::string(R"({"command":")") + TEST_CHILD +
                      R"-(","args":["args","a b","${HOME}","$(id)","é\"",""],"timeout":1e9})-");
  REQUIRE(up.wait_messages(1, 7));
  const auto &m = up.lanes[1].messages;
  REQUIRE(m[2] == "{a b}");
  REQUIRE(m[3] == "{${HOME}}");
  REQUIRE(m[4] == "{$(id)}");
  REQUIRE(m[5] == "{é\"}");
  REQUIRE(m[6] == "{}");
}
