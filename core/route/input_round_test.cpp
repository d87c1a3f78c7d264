// Tests the rounds in which a server asks for input during a call.
#include "route/input_round.hpp"

#include <catch2/catch.hpp>

using namespace bulkhead;

namespace {

constexpr ClientCaps all =
    cap::roots | cap::sampling | cap::elicitation | cap::elicitation_form | cap::elicitation_url;

std::string asking(const std::string &requests, const std::string &more = "") {
  return R"({"resultType":"input_required","inputRequests":)" + requests + more + "}";
}
bh_status failure(const std::string &result, ClientCaps caps = all) {
  REQUIRE(mcp::valid_json(result));
  const auto round = InputRound::read(result, caps);
  return round.has_value() ? BH_OK : round.error().code;
}

const std::string form =
    R"({"method":"elicitation/create","params":{"mode":"form","message":"?"}})";

}  // namespace

TEST_CASE("requests are answered in any order, and the state returns byte for byte") {
  auto round = InputRound::read(
      asking(
          R"({"a \"b\"":)" + form +
              R"(,"c":{"method":"sampling/createMessage","params":{ "x" : 1.0 }},"d":{"method":"roots/list"}})",
          R"(,"requestState":"G1.\u0041\/")"),
      all);
  REQUIRE(round.has_value());
  REQUIRE(round->requests().size() == 3);
  CHECK(round->requests()[0].method == mcp::Method::elicitation_create);
  CHECK(round->requests()[1].params == R"({ "x" : 1.0 })");
  CHECK(round->requests()[2].params == "{}");
  CHECK_FALSE(round->complete());
  CHECK(round->answer(2, R"({"roots":[]})"));
  CHECK(round->answer(0, R"({"action":"accept","content":{"n":1e2}})"));
  CHECK_FALSE(round->answer(0, R"({"action":"decline"})"));  // once
  CHECK_FALSE(round->answer(3, "{}"));
  CHECK_FALSE(round->answer(1, "null"));
  CHECK_FALSE(round->complete());
  CHECK(round->answer(1, R"({"role":"assistant"})"));
  REQUIRE(round->complete());
  const std::string params = "{" + round->members() + R"("name":"x"})";
  REQUIRE(mcp::valid_json(params));
  CHECK(
      mcp::member(params, "inputResponses") ==
      R"({"a \"b\"":{"action":"accept","content":{"n":1e2}},"c":{"role":"assistant"},"d":{"roots":[]}})");
  CHECK(mcp::member(params, "requestState") == R"("G1.\u0041\/")");
}

TEST_CASE("a state alone needs no answer, and without a state none is sent") {
  const auto alone = InputRound::read(R"({"resultType":"input_required","requestState":"s"})", 0);
  REQUIRE(alone.has_value());
  CHECK(alone->complete());
  CHECK(alone->members() == R"("requestState":"s",)");
  auto stateless = InputRound::read(asking(R"({"a":)" + form + "}"), all);
  REQUIRE(stateless.has_value());
  CHECK(stateless->answer(0, "{}"));
  CHECK(stateless->members() == R"("inputResponses":{"a":{}},)");
}

TEST_CASE("only what the client has declared is asked") {
  const std::string url = R"({"method":"elicitation/create","params":{"mode":"url","url":"u"}})";
  CHECK(failure(asking(R"({"a":)" + form + "}"), cap::elicitation) == BH_OK);
  CHECK(failure(asking(R"({"a":)" + form + "}"), cap::sampling | cap::roots) == BH_E_DENIED);
  CHECK(failure(asking(R"({"a":)" + url + "}"), cap::elicitation | cap::elicitation_form) ==
        BH_E_DENIED);
  CHECK(failure(asking(R"({"a":)" + url + "}"), all) == BH_OK);
  CHECK(failure(asking(R"({"a":{"method":"elicitation/create","params":{"mode":"x"}}})")) ==
        BH_E_DENIED);
  CHECK(failure(asking(R"({"a":{"method":"roots/list"}})"), cap::elicitation) == BH_E_DENIED);
}

TEST_CASE("malformed and oversized rounds are refused") {
  const std::initializer_list<std::string> malformed = {
      R"({"resultType":"input_required"})",
      R"({"requestState":7})",
      R"({"inputRequests":[],"requestState":"s"})",
      asking(R"({"a":1})"),
      asking(R"({"a":{}})"),
      asking(R"({"a":{"method":"tools/call","params":{}}})"),
      asking(R"({"a":{"method":"elicitation/create"}})"),
      asking(R"({"a":{"method":"elicitation/create","params":[]}})"),
      asking(R"({"a":)" + form + R"(,"a":)" + form + "}")};
  for (const std::string &bad : malformed) {
    INFO(bad);
    CHECK(failure(bad) == BH_E_PROTOCOL);
  }
  CHECK(failure(R"({"requestState":")" + std::string(InputRound::max_state_bytes, 's') + "\"}") ==
        BH_E_LIMIT);
  const auto with = [](std::size_t count) {
    std::string requests = "{";
    for (std::size_t i = 0; i < count; ++i) {
      requests += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":" + form;
    }
    return asking(requests + "}");
  };
  CHECK(failure(with(InputRound::max_requests)) == BH_OK);
  CHECK(failure(with(InputRound::max_requests + 1)) == BH_E_LIMIT);
  CHECK(failure(asking(R"({"a":{"method":"sampling/createMessage","params":{"x":")" +
                       std::string(InputRound::max_bytes, 'x') + R"("}}})")) == BH_E_LIMIT);
  auto round = InputRound::read(with(2), all);
  REQUIRE(round.has_value());
  CHECK_FALSE(round->answer(0, "{" + std::string(InputRound::max_bytes, ' ') + "}"));
  CHECK(round->answer(0, "{}"));
}
