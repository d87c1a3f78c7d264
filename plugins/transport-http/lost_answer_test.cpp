#include "lost_answer.hpp"

#include <catch2/catch.hpp>

using transport_http::lost_answer;

TEST_CASE("the replacement error has the id of the response, whatever its position") {
  const auto begins = [](std::string_view answer, std::string_view id) {
    CAPTURE(answer);
    CHECK(lost_answer(answer).starts_with(R"({"jsonrpc":"2.0","id":)" + std::string(id) +
                                          R"(,"error":{"code":)"));
  };
  begins(R"({"jsonrpc":"2.0","id":7,"result":{}})", "7");
  begins(R"({"id":-1.5e3})", "-1.5e3");
  begins(R"( { "result" : {"id":1,"a":["}",{"id":"\"]"}]} , "id" : "a\"b" } )", R"("a\"b")");
  begins(R"({"result":"x\\","x":null,"y":[],"id":"7"})", R"("7")");
  begins(R"([{"id":7}])", "null");
  begins(R"({"result":{"id":7}})", "null");
  begins(R"({"result)", "null");
  begins(R"({"id")", "null");
  begins("", "null");
}
