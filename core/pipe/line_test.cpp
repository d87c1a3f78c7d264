#include "pipe/line.hpp"

#include <catch2/catch.hpp>

#include "mcp/scan.hpp"

using namespace bulkhead;
using pipe::classify;
using pipe::LineKind;

TEST_CASE("a line with an ID expects a response; a line without an ID does not") {
  CHECK(classify(R"({"jsonrpc":"2.0","id":1,"method":"ping"})").kind == LineKind::request);
  CHECK(classify(R"({"id":null,"method":"ping"})").kind == LineKind::request);
  CHECK(classify(R"({"method":"ping"})").kind == LineKind::notification);
  CHECK(classify(R"({})").kind == LineKind::notification);
  CHECK(classify(R"( {"id":"a","method":"tools/call","params":{"id":7}} )").id == "\"a\"");
  CHECK(classify(R"({"params":{"id":7},"method":"x"})").kind == LineKind::notification);
  CHECK(classify(R"({"i\u0064":5,"method":"x"})").id == "5");
}

TEST_CASE("a response to the host's request is not a request") {
  CHECK(classify(R"({"id":1,"result":{}})").kind == LineKind::response);
  CHECK(classify(R"({"id":1,"error":{"code":1}})").kind == LineKind::response);
  CHECK(classify(R"({"id":1})").kind == LineKind::request);
  CHECK(classify(R"({"id":1,"method":"x","result":{}})").kind == LineKind::request);
}

TEST_CASE("text that is not an object is sent to the host, which responds with an error") {
  for (const char *text : {"{oops", "[1,2]", "7", "null", "{\"id\":1}}", "\xff\xfe", "{\"id\":1"}) {
    const auto line = classify(text);
    CHECK(line.kind == LineKind::request);
    CHECK(line.id.empty());
  }
}

TEST_CASE("the error response to a lost request is valid JSON for any method name") {
  const auto line = classify(R"({"id":"a\"b","method":"x\"\n\u00e9"})");
  const std::string text =
      pipe::lost_answer(line.id, pipe::method_name(line.method) + ": connection closed");
  REQUIRE(mcp::valid_json(text));
  CHECK(mcp::member(text, "id") == R"("a\"b")");
  CHECK(mcp::member(mcp::member(text, "error"), "code") == "-32001");
  CHECK(mcp::member(pipe::lost_answer({}, "x"), "id") == "null");
  CHECK(pipe::method_name({}) == "request");
  CHECK(pipe::method_name("17") == "request");
}

TEST_CASE("a long method name is truncated at a character boundary") {
  std::string token = "\"";
  for (int i = 0; i < 80; ++i) token += "\xe2\x82\xac";
  const std::string name = pipe::method_name(token + "\"");
  CHECK(name.size() == 99);
}
