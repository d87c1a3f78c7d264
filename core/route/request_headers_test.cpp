// Tests the HTTP headers of requests to stateless servers.
#include "route/request_headers.hpp"

#include <catch2/catch.hpp>
#include <vector>

#include "bulkhead/cpp/basics.hpp"

using namespace bulkhead;

namespace {

using Lines = std::vector<std::string>;

Lines lines(RequestHeaders &headers, const RequestHeaders::Values &values) {
  const auto list = headers.of("2026-07-28", values);
  REQUIRE(list.has_value());
  Lines out;
  for (const bh_header &h : *list)
    out.push_back(std::string(bh::view(h.name)) + ": " + std::string(bh::view(h.value)));
  return out;
}
ItemList tools(const std::string &array) {
  ItemList list;
  REQUIRE(append_page(ItemKind::tool, R"({"tools":)" + array + "}", {}, {}, &list).has_value());
  return list;
}

}  // namespace

TEST_CASE("headers repeat the revision, the method and the name, if the request has a name") {
  RequestHeaders headers;
  CHECK(lines(headers, {mcp::Method::tools_list, "tools/list", {}, {}}) ==
        Lines{"MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/list"});
  CHECK(lines(headers, {mcp::Method::tools_call, "tools/call", "x", "{}"}).back() == "Mcp-Name: x");
  CHECK(lines(headers, {mcp::Method::resources_read, "resources/read", "a:\xC3\xBC", {}}).back() ==
        "Mcp-Name: =?base64?YTrDvA==?=");
  CHECK(lines(headers, {mcp::Method::prompts_get, "prompts/get", " p", {}}).back() ==
        "Mcp-Name: =?base64?IHA=?=");
  CHECK(lines(headers, {mcp::Method::completion_complete, "completion/complete", "x", {}}).size() ==
        2);
}

TEST_CASE("headers repeat annotated arguments, and tools with invalid annotations are removed") {
  RequestHeaders headers;
  ItemList list = tools(
      R"([{"name":"plain","inputSchema":{"type":"object"}},)"
      R"({"name":"good","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"N"}}}},)"
      R"({"name":"bad","inputSchema":{"type":"object","properties":{"r":{"type":"number","x-mcp-header":"R"}}}},)"
      R"({"name":"bad too","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"a b"}}}},)"
      R"({"name":"none"}])");
  Lines removed;
  headers.use_tools(&list, [&](const std::string &text) { removed.push_back(text); });
  REQUIRE(removed.size() == 2);
  CHECK(removed[0].starts_with("tool \"bad\" is not offered: "));
  CHECK(removed[1].starts_with("tool \"bad too\" is not offered: "));
  Lines names;
  for (const auto &item : list.items) names.emplace_back(item.key.in(list.bytes));
  CHECK(names == Lines{"\"plain\"", "\"good\"", "\"none\""});
  const auto call = [&](std::string_view name, std::string_view arguments) {
    return lines(headers, {mcp::Method::tools_call, "tools/call", name, arguments});
  };
  CHECK(call("good", R"({"r":"eu","n":7})").size() == 5);
  CHECK(call("good", R"({"r":"eu"})").back() == "Mcp-Param-Region: eu");
  CHECK(call("good", R"({"r":null})").back() == "Mcp-Name: good");
  CHECK(call("good", {}).back() == "Mcp-Name: good");
  CHECK(call("plain", R"({"r":"eu"})").back() == "Mcp-Name: plain");
  CHECK_FALSE(
      headers
          .of("2026-07-28", {mcp::Method::tools_call, "tools/call", "good", R"({"r":"a","r":"b"})"})
          .has_value());
  // A new list replaces all annotations.
  ItemList next = tools(R"([{"name":"good","inputSchema":{"type":"object"}}])");
  headers.use_tools(&next, [](const std::string &) {});
  CHECK(call("good", R"({"r":"eu"})").back() == "Mcp-Name: good");
}
