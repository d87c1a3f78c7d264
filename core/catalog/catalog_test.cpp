#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "catalog/catalogue.hpp"

#include "bulkhead/cpp/json_writer.hpp"

using namespace bulkhead;

namespace {

ItemList list_of(ItemKind kind, const std::string &array, const ServerDef &def = {}) {
  ItemList items;
  const std::string result = "{\"" + std::string(facts(kind).member) + "\":" + array + "}";
  REQUIRE(mcp::valid_json(result));
  const auto next = append_page(kind, result, def, Limits{}, &items);
  REQUIRE(next.has_value());
  return items;
}

struct Tools {
  std::vector<std::string> servers;
  std::vector<ItemList> lists;
  std::vector<bool> down = {};
  Catalogue build(const Naming &naming, ItemKind kind = ItemKind::tool,
                  const Catalogue::Keep &keep = {}) {
    std::vector<CatalogueSource> sources;
    for (std::size_t i = 0; i < servers.size(); ++i) {
      CatalogueSource source{servers[i], {}, i >= down.size() || !down[i]};
      source.lists[static_cast<std::size_t>(kind)] = &lists[i];
      sources.push_back(source);
    }
    return Catalogue::build(sources, Names(naming), keep);
  }
};

std::string all(const Catalogue &catalogue, ItemKind kind) {
  return std::string(catalogue.page(kind, 0, 0)->items);
}

}  // namespace

TEST_CASE("merging changes only an item's name") {
  Tools tools{
      {"fs"},
      {list_of(ItemKind::tool,
               R"([ {"x" : 1e400,"name": "re\u0061d" , "inputSchema":{"name":"name"}} ])")}};
  const Catalogue merged = tools.build({});
  CHECK(all(merged, ItemKind::tool) ==
        R"({"x" : 1e400,"name": "fs__re\u0061d" , "inputSchema":{"name":"name"}})");
  const Resolved *resolved = merged.resolve(ItemKind::tool, "fs__read");
  REQUIRE(resolved != nullptr);
  CHECK(resolved->original_token == R"("re\u0061d")");
  // The expected value is the BLAKE2b hash of the item's bytes as received.
  CHECK(to_hex(resolved->definition_hash) == "5e2ea98150e82c149e676a290fb58299");
  CHECK(merged.resolve(ItemKind::tool, "read") == nullptr);
}

TEST_CASE("an original name may contain the separator") {
  Tools tools{{"github", "fs"},
              {list_of(ItemKind::tool, R"([{"name":"my__tool"}])"),
               list_of(ItemKind::tool, R"([{"name":"a:b"}])")}};
  CHECK(tools.build({}).resolve(ItemKind::tool, "github__my__tool")->original_token ==
        "\"my__tool\"");
  Naming colon;
  colon.separator = ":";
  CHECK(tools.build(colon).resolve(ItemKind::tool, "fs:a:b")->original_token == "\"a:b\"");
}

TEST_CASE("an alias can be called but is not listed, and never shadows a tool") {
  Naming naming;
  naming.aliases = {{"read", "fs__read"},
                    {"fs__write", "fs__read"},
                    {"gone", "fs__gone"},
                    {"hidden", "fs__hidden"}};
  Tools tools{{"fs"},
              {list_of(ItemKind::tool, R"([{"name":"read"},{"name":"write"},{"name":"hidden"}])")}};
  const Catalogue merged = tools.build(naming, ItemKind::tool,
                                       [](ItemKind, std::uint32_t, std::string_view original,
                                          std::string_view) { return original != R"("hidden")"; });
  CHECK(all(merged, ItemKind::tool) == R"({"name":"fs__read"},{"name":"fs__write"})");
  REQUIRE(merged.resolve(ItemKind::tool, "read") != nullptr);
  CHECK(merged.resolve(ItemKind::tool, "read")->original_token == R"("read")");
  CHECK(merged.resolve(ItemKind::tool, "fs__write")->original_token == R"("write")");
  CHECK(merged.resolve(ItemKind::tool, "gone") == nullptr);
  CHECK(merged.resolve(ItemKind::tool, "hidden") == nullptr);
  CHECK(merged.resolve(ItemKind::prompt, "read") == nullptr);
  CHECK(merged.collisions() ==
        std::vector<std::string>{
            "alias \"fs__write\" is not used: a server has a tool with this name",
            "alias \"gone\" is not used: no server offers \"fs__gone\"",
            "alias \"hidden\" is not used: no server offers \"fs__hidden\""});
}

TEST_CASE("an alias does not shadow a tool of an unavailable server") {
  Naming naming;
  naming.aliases = {{"git__push", "fs__write"}, {"git__new", "fs__write"}, {"push", "git__push"}};
  Tools tools{{"fs", "git"},
              {list_of(ItemKind::tool, R"([{"name":"write"}])"),
               list_of(ItemKind::tool, R"([{"name":"push"}])")}};
  SECTION("that has listed it") {
    tools.down = {false, true};
  }
  SECTION("that has not listed yet") {
    tools.down = {false, true};
    tools.lists[1] = {};
  }
  SECTION("it is up") {}
  const Catalogue merged = tools.build(naming);
  CHECK((merged.resolve(ItemKind::tool, "git__push") == nullptr) == !tools.down.empty());
  CHECK((merged.resolve(ItemKind::tool, "push") == nullptr) == !tools.down.empty());
  CHECK(merged.resolve(ItemKind::tool, "git__new") == nullptr);
  CHECK(all(merged, ItemKind::tool).find("git__push") ==
        (tools.down.empty() ? all(merged, ItemKind::tool).find("git__") : std::string::npos));
  // There is no collision for the alias "push": its tool is listed, or its server may list it
  // later.
  REQUIRE(merged.collisions().size() == 2);
  CHECK(merged.collisions()[0] ==
        "alias \"git__new\" is not used: this name is reserved for tools of server \"git\"");
  CHECK(merged.collisions()[1].find("alias \"git__push\" is not used") == 0);
}

TEST_CASE("without prefixes, an alias is used once all servers have listed their tools") {
  Naming naming;
  naming.prefix = false;
  naming.aliases = {{"mine", "alone"}, {"theirs", "other"}};
  Tools tools{{"a", "b"}, {list_of(ItemKind::tool, R"([{"name":"alone"}])"), {}}};
  tools.down = {false, true};
  SECTION("b has listed nothing yet") {
    const Catalogue merged = tools.build(naming);
    CHECK(merged.resolve(ItemKind::tool, "mine") == nullptr);
    CHECK(merged.collisions() ==
          std::vector<std::string>{"alias \"mine\" is not used: server \"b\" has not listed its "
                                   "tools yet"});
  }
  SECTION("b has a tool of that name, and is down") {
    tools.lists[1] = list_of(ItemKind::tool, R"([{"name":"mine"}])");
    const Catalogue merged = tools.build(naming);
    CHECK(merged.resolve(ItemKind::tool, "mine") == nullptr);
    CHECK(merged.holders(ItemKind::tool, "mine").size() == 1);
  }
  SECTION("b has others, and is down") {
    tools.lists[1] = list_of(ItemKind::tool, R"([{"name":"other"}])");
    CHECK(tools.build(naming).resolve(ItemKind::tool, "mine") != nullptr);
    CHECK(tools.build(naming).resolve(ItemKind::tool, "theirs") == nullptr);
  }
}

TEST_CASE("an alias does not resolve if several servers list its target") {
  Naming naming;
  naming.prefix = false;
  naming.aliases = {{"both", "alone"}, {"mine", "alone"}, {"theirs", "both"}};
  Tools tools{{"a", "b"},
              {list_of(ItemKind::tool, R"([{"name":"both"},{"name":"alone"}])"),
               list_of(ItemKind::tool, R"([{"name":"both"}])")}};
  const Catalogue merged = tools.build(naming);
  CHECK(merged.resolve(ItemKind::tool, "both") == nullptr);
  CHECK(merged.resolve(ItemKind::tool, "theirs") == nullptr);
  CHECK(merged.resolve(ItemKind::tool, "mine") != nullptr);
}

TEST_CASE("a long name is shortened deterministically and resolves") {
  const std::string name(80, 'n');
  Tools tools{{"server"}, {list_of(ItemKind::tool, R"([{"name":")" + name + R"("}])")}};
  const Catalogue first = tools.build({}), second = tools.build({});
  CHECK(all(first, ItemKind::tool) == all(second, ItemKind::tool));
  const std::string shown = Names(Naming{}).compose("server", name).value();
  CHECK(shown.size() == 64);
  CHECK(first.resolve(ItemKind::tool, shown)->original_token == "\"" + name + "\"");
  CHECK(shown != Names(Naming{}).compose("server", name + "x").value());

  Naming strict;
  strict.shorten = false;
  const Catalogue refused = tools.build(strict);
  CHECK(refused.count(ItemKind::tool) == 0);
  REQUIRE(refused.collisions().size() == 1);
  CHECK(refused.collisions()[0].find("too long") != std::string::npos);
}

TEST_CASE("shortening does not split a UTF-8 character") {
  std::string name;
  for (int i = 0; i < 40; ++i) name += "\xc3\xa9";
  const std::string shown = Names(Naming{}).compose("s", name).value();
  std::string quoted = bh::json::quoted(shown);
  CHECK(mcp::valid_json(quoted));
  CHECK(quoted.find("\xef\xbf\xbd") == std::string::npos);
}

TEST_CASE("a name that several servers list is not offered, and the servers are reported") {
  Naming bare;
  bare.prefix = false;
  Tools tools{{"a", "b"},
              {list_of(ItemKind::tool, R"([{"name":"x"}])"),
               list_of(ItemKind::tool, R"([{"name":"x"},{"name":"y"}])")}};
  const Catalogue merged = tools.build(bare);
  CHECK(all(merged, ItemKind::tool) == R"({"name":"y"})");
  CHECK(merged.resolve(ItemKind::tool, "x") == nullptr);
  CHECK(merged.holders(ItemKind::tool, "x") == std::vector<std::string_view>{"a", "b"});
  CHECK(merged.resolve(ItemKind::tool, "y")->source == 1);
  CHECK(merged.holders(ItemKind::tool, "y").empty());
  REQUIRE(merged.collisions().size() == 1);
  CHECK(merged.collisions()[0] ==
        R"(tool "x" is not offered: servers "a", "b" have a tool with this name)");
}

TEST_CASE("without prefixes, the names of an unavailable server stay reserved") {
  Naming bare;
  bare.prefix = false;
  Tools tools{{"a", "b"},
              {list_of(ItemKind::tool, R"([{"name":"x"},{"name":"own"}])"),
               list_of(ItemKind::tool, R"([{"name":"x"}])")}};
  tools.down = {true, false};
  const Catalogue merged = tools.build(bare);
  CHECK(all(merged, ItemKind::tool).empty());
  CHECK(merged.resolve(ItemKind::tool, "x") == nullptr);
  CHECK(merged.resolve(ItemKind::tool, "own") == nullptr);
  CHECK(merged.holders(ItemKind::tool, "own") == std::vector<std::string_view>{"a"});
  CHECK(merged.collisions().size() == 1);
}

TEST_CASE("a name hidden by a policy stays reserved for its server") {
  Naming bare;
  bare.prefix = false;
  Tools tools{
      {"a", "b"},
      {list_of(ItemKind::tool, R"([{"name":"x"}])"), list_of(ItemKind::tool, R"([{"name":"x"}])")}};
  const Catalogue merged = tools.build(
      bare, ItemKind::tool, [](ItemKind, std::uint32_t source, std::string_view, std::string_view) {
        return source == 1;
      });
  CHECK(merged.count(ItemKind::tool) == 0);
}

TEST_CASE("a URI that several servers list does not resolve, not even through a template") {
  Naming bare;
  bare.prefix = false;
  Tools tools{{"a", "b"},
              {list_of(ItemKind::resource, R"([{"uri":"r:1"}])"),
               list_of(ItemKind::resource, R"([{"uri":"r:1"},{"uri":"r:2"}])")}};
  const Catalogue merged = tools.build(bare, ItemKind::resource);
  CHECK_FALSE(merged.resolve_uri("r:1", Names(bare)).has_value());
  CHECK(merged.resolve_uri("r:2", Names(bare))->source == 1);
  Tools templates{{"a", "b"},
                  {list_of(ItemKind::resource_template, R"([{"uriTemplate":"r:{x}"}])"),
                   list_of(ItemKind::resource_template, R"([{"uriTemplate":"r:{x}"}])")}};
  const Catalogue both = templates.build(bare, ItemKind::resource_template);
  CHECK_FALSE(both.resolve_uri("r:1", Names(bare)).has_value());
  CHECK_FALSE(both.resolve_uri("r:{x}", Names(bare)).has_value());
}

TEST_CASE("a name that a server lists twice is listed once") {
  Tools tools{{"a"}, {list_of(ItemKind::tool, R"([{"name":"x"},{"name":"x"}])")}};
  const Catalogue merged = tools.build({});
  CHECK(merged.count(ItemKind::tool) == 1);
  CHECK(merged.collisions().size() == 1);
}

TEST_CASE("pages neither overlap nor leave gaps") {
  std::string array = "[";
  for (int i = 0; i < 7; ++i) {
    array += (i != 0 ? "," : "") + std::string(R"({"name":"t)") + std::to_string(i) + R"("})";
  }
  Tools tools{{"s"}, {list_of(ItemKind::tool, array + "]")}};
  const Catalogue merged = tools.build({});
  std::string joined;
  std::optional<std::uint32_t> next = 0;
  int pages = 0;
  while (next.has_value()) {
    const auto page = merged.page(ItemKind::tool, *next, 3);
    REQUIRE(page.has_value());
    joined += (joined.empty() ? "" : ",") + std::string(page->items);
    next = page->next;
    ++pages;
  }
  CHECK(pages == 3);
  CHECK(joined == all(merged, ItemKind::tool));
  CHECK_FALSE(merged.page(ItemKind::tool, 7, 3).has_value());
  CHECK_FALSE(merged.page(ItemKind::tool, 1000, 3).has_value());
  const Catalogue empty;
  CHECK(empty.page(ItemKind::tool, 0, 3)->items.empty());
  CHECK(empty.page(ItemKind::tool, 0, 3, 1)->items.empty());
}

TEST_CASE("clients with sessions receive other tools only if an output schema is not an object") {
  constexpr auto sessions = Catalogue::For::clients_with_sessions;
  const std::string object = R"("outputSchema":{"type":"object"})", array = R"("outputSchema":[])";
  const auto tool = [](const std::string &name, const std::string &more = {}) {
    return R"({"name":")" + name + "\"" + (more.empty() ? "" : "," + more) + "}";
  };
  const auto list = [](const std::string &tools) {
    return list_of(ItemKind::tool, "[" + tools + "]");
  };
  Tools same{{"a", "b"}, {list(tool("1", object)), list(tool("2") + "," + tool("3", object))}};
  const Catalogue plain = same.build({});
  const std::string_view prebuilt = plain.page(ItemKind::tool, 0, 0)->items;
  const std::string_view shown = plain.page(ItemKind::tool, 0, 0, 0, sessions)->items;
  CHECK(shown.data() == prebuilt.data());
  CHECK(shown.size() == prebuilt.size());

  Tools other{
      {"a", "b"},
      {list(tool("1", object) + "," + tool("2", array)), list(tool("3") + "," + tool("4", array))}};
  const Catalogue mixed = other.build({});
  CHECK(all(mixed, ItemKind::tool) == tool("a__1", object) + "," + tool("a__2", array) + "," +
                                          tool("b__3") + "," + tool("b__4", array));
  const std::string reduced =
      tool("a__1", object) + "," + tool("a__2") + "," + tool("b__3") + "," + tool("b__4");
  const std::string_view stored = mixed.page(ItemKind::tool, 0, 0, 0, sessions)->items;
  CHECK(stored == reduced);
  // The text is composed once, not for each request.
  CHECK(mixed.page(ItemKind::tool, 0, 0, 0, sessions)->items.data() == stored.data());
  std::string pages;
  for (std::optional<std::uint32_t> next = 0; next.has_value();) {
    const auto page = mixed.page(ItemKind::tool, *next, 0, 2 * tool("b__3").size() + 1, sessions);
    REQUIRE(page.has_value());
    pages.append(pages.empty() ? "" : ",").append(page->items);
    next = page->next;
  }
  CHECK(pages == reduced);
  CHECK(mixed.page(ItemKind::tool, 2, 0, 0, sessions)->items == tool("b__3") + "," + tool("b__4"));
}

TEST_CASE("clients without a session receive tools without invalid header annotations") {
  constexpr auto sessions = Catalogue::For::clients_with_sessions;
  const auto tool = [](const std::string &name, const std::string &header) {
    return R"({"name":")" + name + R"(","inputSchema":{"properties":{"p":{"type":"string")" +
           (header.empty() ? "" : R"(,"x-mcp-header":")" + header + "\"") + "}}}}";
  };
  const auto list = [](const std::string &tools) {
    return list_of(ItemKind::tool, "[" + tools + "]");
  };
  const auto build = [&](const std::string &second) {
    Tools tools{{"a", "b"}, {list(tool("1", "Good")), list(tool("2", second))}};
    return tools.build({});
  };
  const std::string good = tool("a__1", "Good");
  const Catalogue bad = build("b a d"), worse = build("b!a d("), none = build(""),
                  fine = build("Fine");
  CHECK(all(bad, ItemKind::tool) == good + "," + tool("b__2", ""));
  CHECK(bad.page(ItemKind::tool, 0, 0, 0, sessions)->items == good + "," + tool("b__2", "b a d"));
  CHECK(all(fine, ItemKind::tool) == good + "," + tool("b__2", "Fine"));
  CHECK(fine.page(ItemKind::tool, 0, 0, 0, sessions)->items == all(fine, ItemKind::tool));
  // Clients with a session are notified of a change that only they see.
  CHECK_FALSE(bad.same_list(ItemKind::tool, worse));
  CHECK_FALSE(bad.same_list(ItemKind::tool, none));
  CHECK(bad.same_list(ItemKind::tool, build("b a d")));
  // Both kinds of removed members in one list.
  Tools both{
      {"a"},
      {list(R"({"name":"1","outputSchema":[]},)" + tool("2", "b a d") + "," + tool("3", "Good"))}};
  const Catalogue mixed = both.build({});
  CHECK(all(mixed, ItemKind::tool) ==
        R"({"name":"a__1","outputSchema":[]},)" + tool("a__2", "") + "," + tool("a__3", "Good"));
  CHECK(mixed.page(ItemKind::tool, 0, 0, 0, sessions)->items ==
        R"({"name":"a__1"},)" + tool("a__2", "b a d") + "," + tool("a__3", "Good"));
}

TEST_CASE("a page is limited in bytes but has at least one item") {
  const std::string item = R"({"name":"s__t"})";  // an item in the list is 15 bytes long
  Tools tools{{"s"}, {list_of(ItemKind::tool, R"([{"name":"t"},{"name":"u"},{"name":"v"}])")}};
  const Catalogue merged = tools.build({});
  const auto items = [&](std::uint32_t first, std::uint32_t count, std::uint64_t bytes) {
    const auto page = merged.page(ItemKind::tool, first, count, bytes);
    REQUIRE(page.has_value());
    const auto braces = std::count(page->items.begin(), page->items.end(), '{');
    CHECK(page->next.has_value() == (first + static_cast<std::uint32_t>(braces) < 3));
    return braces;
  };
  CHECK(items(0, 0, 2 * item.size() + 1) == 2);  // + 1: the comma between the items
  CHECK(items(0, 0, 2 * item.size()) == 1);
  CHECK(items(1, 0, 2 * item.size() + 1) == 2);
  CHECK(items(0, 0, 1) == 1);
  CHECK(items(0, 1, 1000) == 1);
  CHECK(items(0, 0, 1000) == 3);
}

TEST_CASE("allow and deny lists apply to listing and calling") {
  const std::string array = R"([{"name":"a"},{"name":"b"},{"name":"c"}])";
  ServerDef def;
  def.allow_tools = {"a", "b"};
  def.deny_tools = {"b"};
  CHECK(list_of(ItemKind::tool, array, def).items.size() == 1);
  def.allow_tools = std::nullopt;
  CHECK(list_of(ItemKind::tool, array, def).items.size() == 2);
  def.allow_tools = std::vector<std::string>{};
  CHECK(list_of(ItemKind::tool, array, def).items.empty());
  // The allow and deny lists apply to tools but not to prompts.
  CHECK(list_of(ItemKind::prompt, array, def).items.size() == 3);
}

TEST_CASE("invalid items are skipped, and an invalid list is an error") {
  CHECK(list_of(ItemKind::tool, R"([1,"x",{"nam":"y"},{"name":3},{"name":""},{"name":"ok"}])")
            .items.size() == 1);
  ItemList items;
  CHECK_FALSE(append_page(ItemKind::tool, R"({"tools":{}})", {}, {}, &items).has_value());
  CHECK_FALSE(append_page(ItemKind::tool, "[]", {}, {}, &items).has_value());
  Limits small;
  small.items_per_server = 1;
  const auto over =
      append_page(ItemKind::tool, R"({"tools":[{"name":"a"},{"name":"b"}]})", {}, small, &items);
  REQUIRE_FALSE(over.has_value());
  CHECK(over.error().code == BH_E_LIMIT);
}

TEST_CASE("the next cursor is returned unchanged, even if it is empty") {
  ItemList items;
  CHECK(append_page(ItemKind::tool, R"({"tools":[],"nextCursor":"a\u0062"})", {}, {}, &items)
            .value() == R"("a\u0062")");
  CHECK(append_page(ItemKind::tool, R"({"tools":[],"nextCursor":""})", {}, {}, &items).value() ==
        "\"\"");
  CHECK_FALSE(append_page(ItemKind::tool, R"({"tools":[],"nextCursor":null})", {}, {}, &items)
                  ->has_value());
}

TEST_CASE("composed, unlisted and original resource URIs resolve") {
  Tools resources{{"a", "b"},
                  {list_of(ItemKind::resource, R"([{"uri":"file:///x/1"},{"uri":"same://"}])"),
                   list_of(ItemKind::resource, R"([{"uri":"mem://2"},{"uri":"same://"}])")}};
  const Naming naming;
  const Names names(naming);
  const Catalogue merged = resources.build(naming, ItemKind::resource);
  CHECK(all(merged, ItemKind::resource).starts_with(R"({"uri":"bulkhead://a/file:///x/1"})"));
  CHECK(merged.resolve_uri("bulkhead://a/file:///x/1", names)->original_token == "\"file:///x/1\"");
  const auto unlisted = merged.resolve_uri("bulkhead://b/any://thing", names);
  REQUIRE(unlisted.has_value());
  CHECK(unlisted->source == 1);
  CHECK(unlisted->original_token == "\"any://thing\"");
  CHECK(merged.resolve_uri("mem://2", names)->source == 1);
  CHECK_FALSE(merged.resolve_uri("same://", names).has_value());  // listed by two servers
  CHECK_FALSE(merged.resolve_uri("bulkhead://unknown/x", names).has_value());
  CHECK_FALSE(merged.resolve_uri("bulkhead://a", names).has_value());
  CHECK_FALSE(merged.resolve_uri("other://x", names).has_value());
}

TEST_CASE(
    "without prefixes, an unlisted URI resolves to the only server or to the only matching "
    "template") {
  Naming bare;
  bare.prefix = false;
  const Names names(bare);
  Tools one{{"a"}, {list_of(ItemKind::resource, "[]")}};
  CHECK(one.build(bare, ItemKind::resource).resolve_uri("x://y", names)->source == 0);
  Tools two{{"a", "b"},
            {list_of(ItemKind::resource_template, R"([{"uriTemplate":"a://{id}"}])"),
             list_of(ItemKind::resource_template, R"([{"uriTemplate":"b://{id}"}])")}};
  const Catalogue merged = two.build(bare, ItemKind::resource_template);
  CHECK(merged.resolve_uri("b://7", names)->source == 1);
  CHECK_FALSE(merged.resolve_uri("c://7", names).has_value());
}

TEST_CASE("an unlisted name reports which servers may have it") {
  Naming naming;
  const Names names(naming);
  CHECK(names.may_be_of("a", "a__x"));
  CHECK(names.may_be_of("a", "a__b__x"));
  CHECK_FALSE(names.may_be_of("a", "b__x"));
  CHECK_FALSE(names.may_be_of("a", "ab__x"));
  CHECK_FALSE(names.may_be_of("a", "x"));
  CHECK_FALSE(names.may_be_of("a", "a"));
  // A server's name may end with part of the separator.
  CHECK(names.may_be_of("a", "a___x"));
  CHECK(names.may_be_of("a_", "a___x"));

  CHECK(names.uri_may_be_of("a", "bulkhead://a/file:///x"));
  CHECK_FALSE(names.uri_may_be_of("a", "bulkhead://b/file:///x"));
  CHECK_FALSE(names.uri_may_be_of("a", "bulkhead://a"));
  CHECK(names.uri_may_be_of("a", "file:///x"));  // not composed, so any server may have it

  naming.prefix = false;
  const Names bare(naming);
  CHECK(bare.may_be_of("a", "b__x"));
  CHECK(bare.uri_may_be_of("a", "bulkhead://b/x"));
}

TEST_CASE("a shortened name may belong to any server that can produce it") {
  Naming naming;
  naming.max_length = 30;
  const Names names(naming);
  const std::string server = "a-server-with-a-name";
  // The length limit is so small that the composed name is cut inside the prefix, whatever the
  // tool's name is.
  for (const std::string &tool : {std::string(40, 'x'), std::string("1234567890"),
                                  std::string("\xF0\x9F\x98\x80 and more behind it")}) {
    const auto composed = names.compose(server, tool);
    REQUIRE(composed.has_value());
    CHECK(names.may_be_of(server, *composed));
    CHECK_FALSE(names.may_be_of("a-server-with-no-name", *composed));
  }
  naming.max_length = 20;
  const Names shorter(naming);
  const auto cut = shorter.compose(server, "x");
  REQUIRE(cut.has_value());
  CHECK(shorter.may_be_of(server, *cut));
  // After truncation, this server has the same prefix, so the name may belong to this server too.
  CHECK(shorter.may_be_of("a-server-with-another-name", *cut));
  CHECK_FALSE(shorter.may_be_of("b", *cut));
}

TEST_CASE("an item whose name has control characters is skipped and reported") {
  // Raw and escaped characters of these rejected kinds: C0, DEL, C1, line and paragraph separators,
  // and direction overrides.
  const std::string array =
      R"([{"name":"a"},{"name":"x\u001b[2J"},{"name":"l\nm"},{"name":"\u0000"},{"name":"d\u007f"},)"
      "{\"name\":\"d2\x7f\"},{\"name\":\"c1\xC2\x9B\"},"
      R"({"name":"\u0085"},{"name":"\u2028"},{"name":"\u202Etxt"},{"name":"\u2066"},)"
      R"({"name":"x\u001b[2J"},{"name":"\u00e9\u00a0\u2026\ud83d\ude00 ok"}])";
  for (const ItemKind kind : {ItemKind::tool, ItemKind::prompt}) {
    const ItemList items = list_of(kind, array);
    CHECK(items.items.size() == 2);
    CHECK(items.left_out ==
          std::vector<std::string>{"x\\u001b[2J", "l\\u000am", "\\u0000", "d\\u007f", "d2\\u007f",
                                   "c1\\u009b", "\\u0085", "\\u2028", "\\u202etxt", "\\u2066"});
  }
  CHECK(list_of(ItemKind::resource, R"([{"uri":"a://\r","name":"n"},{"uri":"b://","name":"\r"}])")
            .left_out == std::vector<std::string>{"a://\\u000d"});
  CHECK(list_of(ItemKind::resource_template, R"([{"uriTemplate":"a://{x}\t"}])").items.empty());

  Tools tools{{"evil", "good"},
              {list_of(ItemKind::tool, array), list_of(ItemKind::tool, R"([{"name":"a"}])")}};
  const Catalogue merged = tools.build({});
  CHECK(merged.count(ItemKind::tool) == 3);
  CHECK(merged.resolve(ItemKind::tool, "evil__l\nm") == nullptr);
  REQUIRE(merged.collisions().size() == 10);
  CHECK(merged.collisions()[1] ==
        "tool \"l\\u000am\" of server \"evil\" is not offered: its name contains control or "
        "invisible characters");
}

TEST_CASE("an item whose name has invisible characters is skipped and reported") {
  const struct {
    const char *escaped, *shown;
  } cases[] = {{"\\u00ad", "\\u00ad"},
               {"\\u034f", "\\u034f"},
               {"\\u061c", "\\u061c"},
               {"\\u180e", "\\u180e"},
               {"\\u200B", "\\u200b"},
               {"\\u200d", "\\u200d"},
               {"\xE2\x80\x8F", "\\u200f"},
               {"\\u2060", "\\u2060"},
               {"\\u2064", "\\u2064"},
               {"\\u206f", "\\u206f"},
               {"\\u3164", "\\u3164"},
               {"\\ufe00", "\\ufe00"},
               {"\xEF\xB8\x8F", "\\ufe0f"},
               {"\\ufeff", "\\ufeff"},
               {"\\udb40\\udc01", "\\udb40\\udc01"},
               {"\xF3\xA0\x81\x81", "\\udb40\\udc41"},
               {"\\udb40\\udd00", "\\udb40\\udd00"}};
  for (const auto &each : cases) {
    INFO(each.shown);
    for (const ItemKind kind : all_item_kinds) {
      const std::string key(facts(kind).key);
      const ItemList items = list_of(kind, R"([{")" + key + R"(":"a://x)" + each.escaped +
                                               R"(y"},{")" + key + R"(":"a://xy"}])");
      CHECK(items.items.size() == 1);
      CHECK(items.left_out == std::vector<std::string>{std::string("a://x") + each.shown + "y"});
    }
  }
}

TEST_CASE("an item with two members of the same name is skipped and reported") {
  const std::string evil = R"("description":"d","inputSchema":{}})";
  for (const std::string &item :
       {R"({"name":"x","name":"github__create_issue",)" + evil,
        R"({"name":"x","n\u0061me":"github__create_issue",)" + evil,
        R"({"name":"x","Name":"github__create_issue",)" + evil,
        R"({"name":"x","description":"good",)" + evil,
        R"({"name":"x","annotations":{},"annotations":{"readOnlyHint":true},)" + evil}) {
    INFO(item);
    const ItemList items = list_of(ItemKind::tool, "[" + item + R"(,{"name":"y",)" + evil + "]");
    REQUIRE(items.items.size() == 1);
    CHECK(items.items[0].key.in(items.bytes) == "\"y\"");
    CHECK(items.ambiguous == std::vector<std::string>{"x"});
    CHECK(items.left_out.empty());
  }
  const ItemList resources =
      list_of(ItemKind::resource,
              R"([{"uri":"a://x","name":"n","uri":"b://y"},{"uri":"c://","name":"n"}])");
  CHECK(resources.items.size() == 1);
  CHECK(resources.ambiguous == std::vector<std::string>{"a://x"});
  // Members of different objects may have the same name.
  const ItemList good =
      list_of(ItemKind::tool, R"([{"name":"x","inputSchema":{"properties":{"name":{"name":1}}}}])");
  CHECK(good.items.size() == 1);
  CHECK(good.ambiguous.empty());
}

TEST_CASE("the number of reported invalid names is limited") {
  std::string array = "[";
  for (int i = 0; i < 1000; ++i) {
    array += R"({"name":"\n)" + std::to_string(i) + std::string(500, '\x7f') + "\"},";
  }
  array.back() = ']';
  const ItemList items = list_of(ItemKind::tool, array);
  CHECK(items.items.empty());
  CHECK(items.left_out.size() == ItemList::max_left_out);
  for (const std::string &name : items.left_out) CHECK(name.size() <= ItemList::max_shown_name);
}

TEST_CASE("a reported invalid name is truncated between characters") {
  for (std::size_t before = 105; before < 130; ++before) {
    const std::string start(before, 'x');
    const ItemList items =
        list_of(ItemKind::tool, R"([{"name":"\n)" + start + "\xF0\x9F\x98\x80\xC3\xA9 end\"}]");
    REQUIRE(items.left_out.size() == 1);
    const std::string &name = items.left_out.front();
    const std::string whole = "\\u000a" + start + "\xF0\x9F\x98\x80\xC3\xA9 end";
    CHECK(name.size() <= ItemList::max_shown_name);
    CHECK(name.size() > ItemList::max_shown_name - 4);
    CHECK(whole.starts_with(name));
    CHECK((name.size() == whole.size() || !bh::is_utf8_tail(whole[name.size()])));
  }
}
