// Tests which output schemas are removed for clients of the revisions with sessions.
#include "route/session_schemas.hpp"

#include <catch2/catch.hpp>

#include "mcp/scan.hpp"

using namespace bulkhead;

namespace {

std::string reduced(const std::string &tools) {
  std::string room;
  std::string out(with_session_schemas(tools, &room));
  INFO(out);
  REQUIRE(mcp::valid_json("[" + out + "]"));
  return out;
}

}  // namespace

TEST_CASE("an output schema stays if its root has the type object") {
  for (const std::string tools :
       {R"({"name":"a","outputSchema":{"type":"object","properties":{"x":{"type":"array"}}}})",
        R"({"outputSchema" : { "x":1, "type" : "object" } },{"name":"b"})",
        R"({"inputSchema":{"outputSchema":[]}},{"x":"outputSchema"})", ""}) {
    std::string room = "unused";
    CHECK(with_session_schemas(tools, &room) == tools);
  }
}

TEST_CASE("other output schemas are removed, and every other byte stays") {
  const std::string kept = R"({"outputSchema":{"type":"object"},"name":"kept", "x":1e400})";
  CHECK(reduced(R"({"name":"a","outputSchema":{"type":"array","items":{"type":"object"}}},)" +
                kept + R"(,{"outputSchema":true,"name":"b"})") ==
        R"({"name":"a"},)" + kept + R"(,{"name":"b"})");
  for (const std::string schema :
       {"{}", "[]", "7", "null", R"("object")", R"({"type":["object","null"]})",
        R"({"type":"Object"})", R"({"properties":{"type":"object"}})",
        R"({"type":"array","type":"object"})", R"({"anyOf":[{"type":"object"}]})"}) {
    INFO(schema);
    CHECK(reduced(R"({"a":[1, 2] , "outputSchema" : )" + schema + R"( , "name":"x"},)" + kept) ==
          R"({"a":[1, 2] ,  "name":"x"},)" + kept);
  }
  // A repeated member does not hide another one.
  CHECK(reduced(R"({"outputSchema":{"type":"object"},"n":1,"outputSchema":[],"outputSchema":2})") ==
        R"({"outputSchema":{"type":"object"},"n":1})");
}
