// Tests the input that tasks require: what reaches the client, and what rules see of the answers.
#include <catch2/catch.hpp>
#include <string>
#include <string_view>

#include "route/task_world.hpp"

using namespace bulkhead;

namespace {

std::string seen_inputs;  // "method tool" of each input that the policy has evaluated

const bh_policy seeing_inputs = {
    sizeof(bh_policy),
    0,
    [](void *) -> std::uint32_t { return BH_POLICY_DECIDES | BH_POLICY_JUDGES_INPUT; },
    [](void *, const bh_policy_request *request, bh_verdict *out, bh_error *) -> bh_status {
      if (request->event != 0) {
        seen_inputs.append(bh::view(request->method)).append(" ").append(bh::view(request->name));
        seen_inputs += '\n';
      }
      out->verdict = BH_VERDICT_ALLOW;
      return BH_OK;
    },
    [](void *, const bh_policy_request *, bh_str, bh_verdict *out, bh_error *) -> bh_status {
      out->verdict = BH_VERDICT_ALLOW;
      return BH_OK;
    },
    [](void *, const bh_policy_request *) -> bh_status { return BH_OK; },
    nullptr,
};

}  // namespace

TEST_CASE("rules see the tool of a task with its request for input and with the answer") {
  for (const int waiting : {0, 1, 2}) {
    TaskWorld w({"s1"}, &seeing_inputs);
    std::string ids[2];
    const char *const tools[] = {"job", "plain"};
    for (const std::size_t i : {0u, 1u}) {
      w.ask("tools/call",
            R"("name":"s1__)" + std::string(tools[i]) + R"(","arguments":{},"task":{})");
      w.result("s1", R"({"task":{"taskId":")" + std::to_string(i) + R"(","status":"working"}})");
      ids[i] = w.told({"result", "task", "taskId"});
    }
    for (const std::size_t i : {0u, 1u}) {
      seen_inputs.clear();
      for (int n = 0; n < waiting; ++n) {
        w.ask(R"({"jsonrpc":"2.0","id":)" + std::to_string(10 + n) +
              R"(,"method":"tasks/result","params":{"taskId":)" + ids[i] + "}}");
      }
      w.request_of("s1", "elicitation/create", "\"" + std::to_string(i) + "\"");
      w.ask(R"({"jsonrpc":"2.0","id":)" + w.told({"id"}) + R"(,"result":{"action":"decline"}})");
      CHECK(w.replied("s1", {"result", "action"}) == R"("decline")");
      const std::string line = std::string("elicitation/create ") + tools[i] + "\n";
      CHECK(seen_inputs == line + line);
      for (int n = 0; n < waiting; ++n) {
        w.ask(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":)" +
              std::to_string(10 + n) + "}}");
      }
    }
  }
}
