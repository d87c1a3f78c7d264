// Tests requests for input in results of servers of 2026-07-28, to clients of the same revision, if
// a policy evaluates them.
#include <string>
#include <vector>

#include "bulkhead/abi/ext/policy.h"
#include "route/task_world.hpp"

namespace bulkhead {
namespace {

std::string job(std::string_view more = {}) {
  return R"("name":"m1__job","arguments":{})" + std::string(more);
}

std::string judged_texts;  // the methods and texts of the policy's requests
const bh_policy judging_plainly = {
    sizeof(bh_policy),
    0,
    [](void *) -> std::uint32_t { return BH_POLICY_DECIDES | BH_POLICY_JUDGES_INPUT; },
    [](void *, const bh_policy_request *request, bh_verdict *out, bh_error *) -> bh_status {
      judged_texts.append(bh::view(request->method)).append(" ");
      judged_texts.append(bh::view(request->arguments)).append("\n");
      out->verdict = BH_VERDICT_ALLOW;
      return BH_OK;
    },
    [](void *, const bh_policy_request *request, bh_str result, bh_verdict *out,
       bh_error *) -> bh_status {
      judged_texts.append(bh::view(request->method)).append(" ");
      judged_texts.append(bh::view(result)).append("\n");
      out->verdict = BH_VERDICT_ALLOW;
      return BH_OK;
    },
    [](void *, const bh_policy_request *, bh_error *) -> bh_status { return BH_OK; },
    nullptr,
};

}  // namespace

TEST_CASE("a client of 2026-07-28 is asked by the gateway if the policy evaluates input") {
  TaskWorld w({"m1"}, &judging_plainly);
  const std::string form = R"({"method":"elicitation/create","params":{"message":"m"}})",
                    capable = R"({"elicitation":{}})";
  w.ask_alone("tools/call", job(), "ada", capable);
  judged_texts.clear();
  w.result("m1", R"({"resultType":"input_required","requestState":"raw","inputRequests":{"a":)" +
                     form + R"(,"b":)" + form + "}}");
  for (int i = 0; i < 2'000 && w.got.empty(); ++i) w.reactor->poll(10);
  CHECK(w.told({"result", "resultType"}) == R"("input_required")");
  const std::size_t first = judged_texts.find("elicitation/create");
  CHECK(first != std::string::npos);
  CHECK(judged_texts.find("elicitation/create", first + 1) != std::string::npos);
  std::vector<std::string> keys;
  mcp::for_each_member(w.told({"result", "inputRequests"}),
                       [&](std::string_view key, std::string_view request) {
                         CHECK(request == form);
                         keys.emplace_back(key);
                       });
  REQUIRE(keys.size() == 2);
  const std::string state = w.told({"result", "requestState"});
  judged_texts.clear();
  w.ask_alone("tools/call",
              job(",\"inputResponses\":{" + keys[0] + R"(:{"action":"accept"},)" + keys[1] +
                  R"(:{"action":"cancel"}},"requestState":)" + state),
              "ada", capable);
  CHECK(w.sent("m1", {"params", "inputResponses"}) ==
        R"({"a":{"action":"accept"},"b":{"action":"cancel"}})");
  CHECK(w.sent("m1", {"params", "requestState"}) == R"("raw")");
  CHECK(judged_texts.find(R"({"action":"accept"})") != std::string::npos);
  w.result("m1", R"({"resultType":"complete","content":[]})");
  CHECK(w.told({"result", "content"}) == "[]");
}

TEST_CASE("a request for input that the policy cannot evaluate ends the call") {
  TaskWorld w({"m1"}, &judging_plainly);
  const std::string requests =
      R"("inputRequests":{"k":{"method":"elicitation/create","params":{"message":"m"}}}})";
  for (const std::string_view type :
       {R"("result\u0054ype":"input_required",)", R"("resultType":"input_requ\u0069red",)"}) {
    w.ask_alone("tools/call", job(), "ada", R"({"elicitation":{}})");
    w.result("m1", "{" + std::string(type) + requests);
    CHECK(w.told({"result"}).empty());
    const std::string text = w.told({"error", "message"});
    CHECK((text.find("rules about inputs") != std::string::npos ||
           text.find("unknown type") != std::string::npos));
  }
}

}  // namespace bulkhead
