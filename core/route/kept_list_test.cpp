// Tests serializing the lists of a lane and parsing untrusted text as a stored list.
#include "route/kept_list.hpp"

#include <catch2/catch.hpp>

using namespace bulkhead;

namespace {

std::array<ItemList, item_kinds> some_items() {
  std::array<ItemList, item_kinds> items;
  const Limits limits;
  const std::string_view answers[item_kinds] = {
      R"({"tools":[{"name":"a","x":1e400},{"name":"b \"q\""}]})",
      R"({"resources":[{"uri":"file:///x"}]})", R"({"resourceTemplates":[]})",
      R"({"prompts":[{"name":"p"}]})"};
  for (const ItemKind kind : all_item_kinds) {
    const auto index = static_cast<std::size_t>(kind);
    REQUIRE(append_page(kind, answers[index], {}, limits, &items[index]).has_value());
  }
  return items;
}

bool reads(std::string_view text, const ServerDef &def = {}, const Limits &limits = {}) {
  ListedItems out;
  return read_kept_list(text, def, limits, &out);
}

}  // namespace

TEST_CASE("stored lists are read back byte for byte") {
  const auto items = some_items();
  ServerCaps caps;
  caps.tools = caps.resources = caps.subscribe = caps.completions = true;
  const std::string text = kept_list_text(caps, "use \"a\"\n", items);
  REQUIRE(mcp::valid_json(text));
  ListedItems out;
  REQUIRE(read_kept_list(text, {}, {}, &out));
  CHECK(out.items == items);
  CHECK(out.instructions == "use \"a\"\n");
  CHECK((out.caps.tools && out.caps.resources && out.caps.subscribe && out.caps.completions));
  CHECK_FALSE((out.caps.prompts || out.caps.logging));
}

TEST_CASE("a stored list is validated like a server's response") {
  const std::string text = kept_list_text({}, {}, some_items());
  CHECK(reads(text));
  ServerDef hides;
  hides.deny_tools = {"a"};
  ListedItems out;
  REQUIRE(read_kept_list(text, hides, {}, &out));
  CHECK(out.items[0].items.size() == 1);
  Limits few;
  few.items_per_server = 1;
  CHECK_FALSE(reads(text, {}, few));
  CHECK_FALSE(reads(text.substr(0, text.size() - 1)));
  CHECK_FALSE(reads("[]"));
  CHECK_FALSE(reads(""));
  CHECK_FALSE(reads(R"({"capabilities":{},"tools":[]})"));
  CHECK_FALSE(reads(R"({"capabilities":1,"tools":[],"resources":[],"resourceTemplates":[],)"
                    R"("prompts":[]})"));
  CHECK_FALSE(reads(text + std::string(max_kept_list_bytes, ' ')));
}

TEST_CASE("a list that exceeds the size limit is not stored") {
  std::array<ItemList, item_kinds> items;
  const std::string answer =
      R"({"tools":[{"name":"a","d":")" + std::string(max_kept_list_bytes, 'x') + R"("}]})";
  REQUIRE(append_page(ItemKind::tool, answer, {}, {}, items.data()).has_value());
  CHECK(kept_list_text({}, {}, items).empty());
}
