// Tests which header annotations are removed from the tools that clients of 2026-07-28 receive.
#include "catalog/header_annotations.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "mcp/scan.hpp"

using namespace bulkhead;

namespace {

// A tool with one string property that is annotated with `header`, a JSON value.
std::string annotated(const std::string &header, const std::string &name = "inputSchema") {
  return R"({"name":"t", ")" + name +
         R"(" : {"type":"object","properties":{"a":{"type":"string","x-mcp-header":)" + header +
         R"(}}} , "description":"x-mcp-header \u00e9"})";
}

}  // namespace

TEST_CASE("a tool whose header annotations are valid stays") {
  for (const std::string &tool :
       {annotated(R"("Region")"), annotated(R"("\u0052")"), annotated("7", "outputSchema"),
        std::string(R"({"name":"x-mcp-header"})"), std::string(R"({"inputSchema":{}})"),
        std::string(R"({"inputSchema":7,"x":"x-mcp-header"})"), std::string("{}")}) {
    INFO(tool);
    CHECK_FALSE(without_invalid_headers(tool).has_value());
  }
}

TEST_CASE("invalid header annotations are removed, and every other byte of the tool stays") {
  const std::string expected =
      R"({"name":"t", "inputSchema" : {"type":"object","properties":{"a":{"type":"string"}}} , )"
      R"("description":"x-mcp-header \u00e9"})";
  for (const std::string header : {"7", "null", R"("")", R"("a b")", "{}", R"(["Region"])"}) {
    INFO(header);
    CHECK(without_invalid_headers(annotated(header)) == expected);
  }
  const auto escaped = without_invalid_headers(annotated("1", R"(input\u0053chema)"));
  REQUIRE(escaped.has_value());
  CHECK(mcp::member(mcp::member(mcp::member(*escaped, "inputSchema"), "properties"), "a") ==
        R"({"type":"string"})");
}
