// Tests that a policy evaluates exactly the data that the server then acts on, and that its
// verdicts on a list apply only to that list.
#include <catch2/catch.hpp>
#include <string>

#include "embed/policy_world.hpp"

using namespace bulkhead;

TEST_CASE("a completion's type is parsed as the server parses it") {
  PolicyWorld w(BH_POLICY_DECIDES);
  w.judge.judge = nullptr;
  w.up.capabilities["a"] = R"({"tools":{},"resources":{},"completions":{}})";
  w.start();
  Client c(*w.host);
  const auto complete = [&](const std::string &ref) {
    c.got.clear();
    w.judge.asked.clear();
    c.end->send(R"({"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":)" + ref +
                R"(,"argument":{"name":"n","value":"v"}}})");
  };
  const auto sent = [&] { return w.up.last("a").find("completion/complete") != std::string::npos; };
  SECTION("a prompt whose type contains an escape sequence is not taken for a resource") {
    complete(R"({"type":"ref\/prompt","name":"secret","uri":"bulkhead://a/m://1"})");
    CHECK(w.judge.asked.empty());
    CHECK(c.has("Prompt not found: secret"));
    CHECK_FALSE(sent());
  }
  SECTION("an unknown type is refused") {
    for (const char *type : {R"("ref/other")", "7", R"("")"}) {
      complete(R"({"type":)" + std::string(type) +
               R"(,"name":"secret","uri":"bulkhead://a/m://1"})");
      CHECK(c.has(R"("error":{"code":-32602)"));
    }
    complete(R"({"uri":"bulkhead://a/m://1"})");
    CHECK(c.has(R"("error":{"code":-32602)"));
    CHECK_FALSE(sent());
  }
  SECTION("a resource") {
    complete(R"({"type":"ref\/resource","uri":"bulkhead://a/m://1"})");
    REQUIRE(w.judge.asked.size() == 1);
    CHECK(w.judge.last().name == "m://1");
    CHECK(sent());
  }
}

TEST_CASE("a cursor for a filtered list is not valid for the unfiltered list") {
  PolicyWorld w(BH_POLICY_FILTERS_LISTS);
  w.profile.limits.policy_timeout_ms = 80;
  w.profile.limits.page_items = 1;
  w.start();
  Client c(*w.host);
  c.end->send(list_tools);
  REQUIRE(w.judge.asked.size() == 3);
  for (const auto &asked : w.judge.asked) {
    if (asked.name != "x" || asked.server != "a") w.judge.filtered(asked.number, true);
  }
  REQUIRE(w.turn_until([&] { return !c.got.empty(); }));
  REQUIRE(c.has("a__y"));
  const std::size_t at = c.got[0].find("\"nextCursor\":\"");
  REQUIRE(at != std::string::npos);
  const std::string cursor = c.got[0].substr(at + 14, 24);
  c.got.clear();
  w.judge.judge = nullptr;  // without a verdict function, all items are listed
  c.end->send(R"({"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":")" + cursor +
              R"("}})");
  REQUIRE(w.turn_until([&] { return !c.got.empty(); }));
  CHECK(c.has(R"("error":{"code":-32602)"));
}
