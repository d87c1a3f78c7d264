// Tests which output schemas are removed for clients of the revisions with sessions.
#include "catalog/session_schemas.hpp"

#include <catch2/catch.hpp>

#include "mcp/scan.hpp"

using namespace bulkhead;

namespace {

std::string reduced(const std::string &tool) {
  const auto out = without_foreign_schemas(tool);
  INFO(tool);
  REQUIRE(out.has_value());
  REQUIRE(mcp::valid_json(*out));
  return *out;
}

}  // namespace

TEST_CASE("an output schema stays if its root has the type object") {
  for (const std::string tool :
       {R"({"name":"a","outputSchema":{"type":"object","properties":{"x":{"type":"array"}}}})",
        R"({"outputSchema" : { "x":1, "type" : "object" } })",
        R"({"output\u0053chema":{"type":"object"},"description":"\u00e9"})",
        R"({"inputSchema":{"outputSchema":[]}})", R"({"x":"outputSchema"})",
        R"({"outputSchemas":[],"output\u0053chemas":[]})", "{}"}) {
    INFO(tool);
    CHECK_FALSE(without_foreign_schemas(tool).has_value());
  }
}

TEST_CASE("other output schemas are removed, and all other members stay") {
  CHECK(reduced(R"({"name":"a","outputSchema":{"type":"array","items":{"type":"object"}}})") ==
        R"({"name":"a"})");
  CHECK(reduced(R"({"outputSchema":true,"name":"b"})") == R"({"name":"b"})");
  CHECK(reduced(R"({"outputSchema":true})") == "{}");
  for (const std::string name : {"outputSchema", R"(output\u0053chema)"}) {
    for (const std::string schema :
         {"{}", "[]", "7", "null", R"("object")", R"({"type":["object","null"]})",
          R"({"type":"Object"})", R"({"properties":{"type":"object"}})",
          R"({"type":"array","type":"object"})", R"({"type":"object","ty\u0070e":"array"})",
          R"({"anyOf":[{"type":"object"}]})"}) {
      INFO(schema);
      CHECK(reduced(R"({"a":[1, 2] , ")" + name + "\" : " + schema + R"( , "x\u0041":1e400})") ==
            R"({"a":[1, 2],"x\u0041":1e400})");
    }
  }
}

TEST_CASE("a repeated member does not hide another one") {
  std::string many = R"({"outputSchema":{"type":"object"})";
  for (int i = 0; i < 20; ++i) {
    many += ",\"n" + std::to_string(i) + R"(":1,"outputSchema":)" + (i % 2 != 0 ? "[]" : "2");
  }
  const std::string out = reduced(many + "}");
  CHECK(out.starts_with(R"({"outputSchema":{"type":"object"},"n0":1,"n1":1,)"));
  CHECK(out.ends_with(R"("n19":1})"));
  CHECK(out.find("outputSchema", 3) == std::string::npos);
}
