// Tests comparing listed tool definitions with the approved ones.
#include "route/pins.hpp"

#include <catch2/catch.hpp>

#include "bulkhead/abi/ext/policy.h"

using namespace bulkhead;

namespace {

std::string tool(std::string_view name, std::string_view description) {
  return R"({"name":")" + std::string(name) + R"(","description":")" + std::string(description) +
         R"(","inputSchema":{"type":"object"}})";
}

ItemList list_of(const std::vector<std::string> &tools) {
  std::string result = R"({"tools":[)";
  for (const std::string &one : tools) result += (result.back() == '[' ? "" : ",") + one;
  ItemList out;
  REQUIRE(append_page(ItemKind::tool, result + "]}", ServerDef{}, Limits{}, &out).has_value());
  return out;
}

std::uint32_t state(const Pins &pins, const ItemList &list, std::size_t item,
                    const std::string &name) {
  return pins.state("s", name, list.items[item].hash);
}

PinRules rules(PinRules::Mode mode, bool accept_new = false) {
  return {mode, accept_new};
}

std::vector<ToolPin> pins_in(const std::vector<PinNews> &news) {
  std::vector<ToolPin> out;
  for (const PinNews &one : news) out.push_back(one.pin);
  return out;
}

}  // namespace

TEST_CASE("the first list of a server is approved, and an unchanged list is not reported") {
  Pins pins;
  pins.use(rules(PinRules::Mode::enforce), {});
  const ItemList list = list_of({tool("a", "reads"), tool("b", "writes")});
  CHECK(state(pins, list, 0, "a") == BH_PIN_UNKNOWN);
  const auto news = pins.listed("s", list);
  REQUIRE(news.size() == 2);
  CHECK(news[0].pin.approved());
  CHECK(news[0].pin.hash.size() == 32);
  CHECK(news[0].definition == tool("a", "reads"));
  CHECK(pins.listed("s", list).empty());
  CHECK(state(pins, list, 0, "a") == BH_PIN_SAME);
  // Here, the definition of "a" is compared with the pin of "b".
  CHECK(state(pins, list, 0, "b") == BH_PIN_CHANGED);
  CHECK(pins.state("other", "a", list.items[0].hash) == BH_PIN_UNKNOWN);

  Pins next;  // the pins of the next process
  next.use(rules(PinRules::Mode::enforce), pins_in(news));
  CHECK(next.listed("s", list).empty());
  CHECK(state(next, list, 0, "a") == BH_PIN_SAME);
}

TEST_CASE("a changed definition is reported once with both hashes, and again when it is restored") {
  Pins pins;
  pins.use(rules(PinRules::Mode::watch), {});
  const ItemList before = list_of({tool("a", "reads")}), after = list_of({tool("a", "steals")});
  const std::string hash = pins.listed("s", before).at(0).pin.hash;
  const auto news = pins.listed("s", after);
  REQUIRE(news.size() == 1);
  CHECK(news[0].pin.hash == hash);
  CHECK(news[0].pin.seen == to_hex(after.items[0].hash));
  CHECK_FALSE(news[0].pin.approved());
  CHECK(news[0].definition == tool("a", "steals"));
  CHECK(state(pins, after, 0, "a") == BH_PIN_CHANGED);
  CHECK(state(pins, before, 0, "a") == BH_PIN_SAME);
  CHECK(pins.listed("s", after).empty());
  const auto back = pins.listed("s", before);
  REQUIRE(back.size() == 1);
  CHECK(back[0].pin.approved());
}

TEST_CASE("a renamed tool is reported with its former name; a copy of a listed tool is new") {
  Pins pins;
  pins.use(rules(PinRules::Mode::watch, true), {});
  pins.listed("s", list_of({tool("a", "reads")}));
  const auto copied = pins.listed("s", list_of({tool("a", "reads"), tool("a2", "reads")}));
  REQUIRE(copied.size() == 1);
  CHECK(copied[0].pin.renamed_from.empty());
  CHECK(copied[0].pin.approved());  // the profile accepts new tools
  const ItemList renamed = list_of({tool("a2", "reads"), tool("b", "reads")});
  const auto news = pins.listed("s", renamed);
  REQUIRE(news.size() == 1);
  CHECK(news[0].pin.tool == "b");
  CHECK(news[0].pin.renamed_from == "a");
  CHECK_FALSE(news[0].pin.approved());
  CHECK(state(pins, renamed, 1, "b") == BH_PIN_UNKNOWN);
}

TEST_CASE("unapproved tools are counted over all lists of a server") {
  // The server lists other tools to clients that support sampling.
  const ItemList basic = list_of({tool("a", "reads"), tool("b", "writes")});
  const ItemList sampling = list_of({tool("a", "reads"), tool("b", "writes"), tool("c", "asks")});
  Pins pins;
  pins.use(rules(PinRules::Mode::enforce), {});
  pins.listed("s", basic);
  CHECK(pins.unapproved("s").empty());
  pins.listed("s", sampling);
  pins.listed("s", basic);
  CHECK(pins.unapproved("s") == std::set<std::string, std::less<>>{"c"});
  pins.listed("s", list_of({tool("a", "deletes"), tool("b", "writes")}));
  CHECK(pins.unapproved("s") == std::set<std::string, std::less<>>{"a", "c"});
  pins.listed("s", basic);
  CHECK(pins.unapproved("s") == std::set<std::string, std::less<>>{"c"});
  CHECK(pins.unapproved("other").empty());
}

TEST_CASE("a new tool of a known server is not approved unless the profile accepts it") {
  for (const bool accept : {false, true}) {
    Pins pins;
    pins.use(rules(PinRules::Mode::enforce, accept), {});
    pins.listed("s", list_of({tool("a", "reads")}));
    const auto news = pins.listed("s", list_of({tool("a", "reads"), tool("c", "more")}));
    REQUIRE(news.size() == 1);
    CHECK(news[0].pin.approved() == accept);
    CHECK(news[0].pin.seen.empty() == accept);
  }
}

TEST_CASE(
    "definitions are not compared if pins are off; tools that exceed a limit are not approved") {
  Pins off;
  off.use(rules(PinRules::Mode::off), {});
  CHECK(off.listed("s", list_of({tool("a", "reads")})).empty());
  Pins pins;
  pins.use(rules(PinRules::Mode::enforce), {});
  const std::string name(max_pin_name_bytes + 1, 'x');
  const ItemList list = list_of({tool(name, "reads"), tool("a", "reads")});
  CHECK(pins.listed("s", list).size() == 1);
  CHECK(state(pins, list, 0, name) == BH_PIN_UNKNOWN);

  std::vector<ToolPin> full(most_pins);
  for (std::size_t i = 0; i < full.size(); ++i) {
    full[i] = {"full", std::to_string(i), "h", "h", "", "", ""};
  }
  pins.use(rules(PinRules::Mode::enforce), full);
  CHECK(pins.listed("s", list).empty());
}

TEST_CASE("reported definitions have the server's original bytes, unless they are too long") {
  Pins pins;
  pins.use(rules(PinRules::Mode::watch), {});
  const std::string usual = tool("a", "reads"), empty = tool("b", "");
  const std::string longest = tool("b", std::string(max_pin_definition_bytes - empty.size(), 'x'));
  const std::string longer = tool("c", std::string(max_pin_definition_bytes, 'x'));
  const auto news = pins.listed("s", list_of({usual, longest, longer}));
  REQUIRE(news.size() == 3);
  CHECK(news[0].definition == usual);
  CHECK(news[1].definition == longest);
  CHECK(news[2].definition.empty());
  const std::string changed = tool("a", "writes");
  const auto later = pins.listed("s", list_of({changed, longest, longer}));
  REQUIRE(later.size() == 1);
  CHECK(later[0].definition == changed);
}
