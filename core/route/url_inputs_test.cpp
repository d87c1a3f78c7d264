#include "route/url_inputs.hpp"

#include <catch2/catch.hpp>

using namespace bulkhead;

namespace {

std::string error_with(const std::string &elicitations, const std::string &code = "-32042") {
  return R"({"code":)" + code + R"(,"message":"sign in","data":{"elicitations":)" + elicitations +
         "}}";
}
const std::string one =
    R"({"mode":"url","elicitationId":"e","message":"Say \"hi\"","url":"https://a.example/x"})";

}  // namespace

TEST_CASE("url inputs: the elicitations of the error become input requests, without their ids") {
  const auto inputs = url_inputs(error_with("[" + one + "," + one + "]"));
  REQUIRE(inputs.has_value());
  const std::string input =
      R"({"method":"elicitation/create","params":{"mode":"url","message":"Say \"hi\"","url":"https://a.example/x"}})";
  CHECK(*inputs == R"({"url-1":)" + input + R"(,"url-2":)" + input + "}");
}

TEST_CASE("url inputs: other errors have none") {
  std::string many = "[" + one;
  for (std::size_t i = 0; i < max_url_inputs; ++i) many += "," + one;
  for (const std::string &error :
       {error_with("[" + one + "]", "-32041"), error_with("[]"), error_with("{}"),
        error_with("[1]"), error_with(R"([{"message":"m"}])"),
        error_with(R"([{"url":"u","message":1}])"), error_with(many + "]"),
        std::string(R"({"code":-32042,"message":"m"})"),
        std::string(R"({"code":-32042,"message":"m","data":[]})"), std::string("[]")}) {
    INFO(error);
    CHECK_FALSE(url_inputs(error).has_value());
  }
}
