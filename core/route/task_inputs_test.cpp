// Tests the input that tasks require: which requests reach the client, and what rules evaluate.
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
    [](void *, const bh_policy_request *, bh_error *) -> bh_status { return BH_OK; },
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

TEST_CASE("the input that a task requires is forwarded only if its client has declared it") {
  TaskWorld w({"m1"});
  const std::string form = R"({"method":"elicitation/create","params":{"message":"?"}})",
                    sampling = R"({"method":"sampling/createMessage","params":{}})";
  const auto capabilities = [](const std::string &more) {
    return R"({"extensions":{"io.modelcontextprotocol/tasks":{}})" + more + "}";
  };
  // Requests about the task use the connection on which it was created, with these capabilities.
  const std::string both = R"(,"elicitation":{},"sampling":{})";
  w.ask_alone("tools/call", R"("name":"m1__job","arguments":{})", "ada", capabilities(both));
  w.result("m1", R"({"resultType":"task","taskId":"1","status":"working"})");
  const std::string id = w.told({"result", "taskId"});
  const auto poll = [&](const std::string &members, const std::string &declared) {
    w.ask_alone("tasks/get", R"("taskId":)" + id, "ada", capabilities(declared));
    w.result("m1",
             R"({"resultType":"complete","taskId":"1","status":"input_required",)" + members + "}");
    CHECK(w.told({"error", "code"}) == (w.told({"result"}).empty() ? "-32603" : ""));
    return w.told({"result", "inputRequests"}) + w.told({"error", "message"});
  };
  const auto requests = [](const std::string &value) { return R"("inputRequests":)" + value; };
  const auto refused = [](const std::string &text, std::string_view why) {
    INFO(text);
    CHECK(text.find(why) != std::string::npos);
  };
  for (const std::string &request : {form, sampling}) {
    const std::string one = R"({"k":)" + request + "}",
                      two = R"({"a":)" + form + R"(,"b":)" + request + "}";
    CHECK(poll(requests(one), both) == one);
    CHECK(poll(requests(two), both) == two);
    refused(poll(requests(one), ""), "that was not declared to it");
    refused(poll(requests(two), R"(,"sampling":{})"), "that was not declared to it");
  }
  CHECK(poll(requests("{}"), "") == "{}");
  CHECK(poll(R"("statusMessage":"m")", "").empty());
  refused(poll(requests(R"({"k":{"method":"tools/list"}})"), both), "unknown kind of input");
  refused(poll(requests("[]"), both), "not an object");
  refused(poll(requests(R"({"k":{"method":"elicitation/create","params":{"message":")" +
                        std::string(1u << 20, 'm') + R"("}}})"),
               both),
          "more than 1048576 bytes");
  refused(poll(requests("{}") + R"(,"input\u0052equests":{"k":)" + sampling + "}", both),
          "duplicate inputRequests");
  // The description of a new task is checked too. In a task, requestState has no meaning and is
  // forwarded unchanged.
  w.ask_alone("tools/call", R"("name":"m1__job","arguments":{})");
  w.result("m1", R"({"resultType":"task","taskId":"2","status":"input_required","inputRequests":)"
                 R"({"k":)" +
                     form + "}}");
  CHECK(w.told({"error", "message"}).find("was not declared") != std::string::npos);
  poll(requests("{}") + R"(,"requestState":"raw")", both);
  CHECK(w.told({"result", "requestState"}) == R"("raw")");
}
