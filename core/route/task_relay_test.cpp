// Tests tasks in the Router: from the client's request to the server's message and back.
#include <catch2/catch.hpp>
#include <string>
#include <string_view>

#include "route/task_world.hpp"

using namespace bulkhead;

namespace {

std::string call_of(const std::string &tool, std::string_view more = {}) {
  return R"("name":")" + tool + R"(","arguments":{})" + std::string(more);
}
std::string with_id(std::string_view id) {
  return R"("taskId":)" + std::string(id);
}
constexpr std::string_view as_task = R"(,"task":{"ttl":1000})";
constexpr std::string_view extensions[] = {
    "params", "_meta", "io.modelcontextprotocol/clientCapabilities", "extensions"};

// What the policies below have evaluated, one line for each request. `masking` replaces "secret".
std::string evaluated;
const bh_policy masking = {
    sizeof(bh_policy),
    0,
    [](void *) -> std::uint32_t { return BH_POLICY_DECIDES | BH_POLICY_READS_RESULTS; },
    [](void *, const bh_policy_request *request, bh_verdict *out, bh_error *) -> bh_status {
      evaluated.append(bh::view(request->method)).append(" ").append(bh::view(request->name));
      evaluated += '\n';
      out->verdict = BH_VERDICT_ALLOW;
      return BH_OK;
    },
    [](void *, const bh_policy_request *request, bh_str result, bh_verdict *out,
       bh_error *) -> bh_status {
      evaluated.append(bh::view(request->method)).append(" ").append(bh::view(request->name));
      evaluated.append(" ").append(bh::view(result)).append("\n");
      static std::string text;
      text = bh::view(result);
      const std::size_t at = text.find("secret");
      out->verdict = at == std::string::npos ? BH_VERDICT_ALLOW : BH_VERDICT_REWRITE;
      if (at != std::string::npos) out->arguments = bh::str(text.replace(at, 6, "***"));
      return BH_OK;
    },
    [](void *, const bh_policy_request *, bh_error *) -> bh_status { return BH_OK; },
    nullptr,
};

// Like `masking`, but also evaluates input.
const bh_policy judging_input = [] {
  bh_policy policy = masking;
  policy.needs = [](void *) -> std::uint32_t {
    return BH_POLICY_DECIDES | BH_POLICY_READS_RESULTS | BH_POLICY_JUDGES_INPUT;
  };
  return policy;
}();

}  // namespace

TEST_CASE(
    "2026-07-28: the ids of two servers do not collide, and each request reaches its server") {
  TaskWorld w({"m1", "m2"});
  std::string ids[2];
  for (const int i : {0, 1}) {
    const std::string server = i == 0 ? "m1" : "m2";
    w.ask_alone("tools/call", call_of(server + "__job"));
    CHECK(w.sent(server, {extensions[0], extensions[1], extensions[2], extensions[3]}) ==
          R"({"io.modelcontextprotocol/tasks":{}})");
    w.result(server, R"({"resultType":"task","taskId":"1","status":"working","ttlMs":5})");
    CHECK(w.told({"result", "resultType"}) == R"("task")");
    CHECK(w.told({"result", "status"}) == R"("working")");
    CHECK(w.told({"result", "ttlMs"}) == "5");
    ids[i] = w.told({"result", "taskId"});
  }
  CHECK(ids[0] != ids[1]);
  for (const std::string_view method : {"tasks/get", "tasks/update", "tasks/cancel"}) {
    for (const int i : {0, 1}) {
      const std::string server = i == 0 ? "m1" : "m2", other = i == 0 ? "m2" : "m1";
      const std::size_t before = w.servers[other].got.size();
      w.ask_alone(method, with_id(ids[i]) + R"(,"inputResponses":{"k":{"action":"accept"}})");
      CHECK(w.sent(server, {"method"}) == "\"" + std::string(method) + "\"");
      CHECK(w.sent(server, {"params", "taskId"}) == R"("1")");
      // The other requests carry only the id.
      CHECK(w.sent(server, {"params", "inputResponses"}) ==
            (method == "tasks/update" ? R"({"k":{"action":"accept"}})" : ""));
      CHECK(w.servers[other].got.size() == before);
      w.result(server,
               R"({"resultType":"complete","taskId":"1","status":"completed","result":{}})");
      CHECK(w.told({"result", "taskId"}) == ids[i]);
      CHECK(w.told({"result", "result"}) == "{}");
    }
  }
  // The server's errors are forwarded to the client.
  w.ask_alone("tasks/get", with_id(ids[0]));
  w.answer("m1", "error", R"({"code":-32602,"message":"Task not found: 1"})");
  CHECK(w.told({"error", "code"}) == "-32602");
}

TEST_CASE("2026-07-28: a task of another principal is unknown, and so is a forged id") {
  TaskWorld w({"m1"});
  w.ask_alone("tools/call", call_of("m1__job"));
  w.result("m1", R"({"resultType":"task","taskId":"1","status":"working"})");
  const std::string id = w.told({"result", "taskId"});
  const std::size_t before = w.servers["m1"].got.size();
  for (const std::string_view method : {"tasks/get", "tasks/update", "tasks/cancel"}) {
    w.ask_alone(method, with_id(id), "eve");
    const std::string foreign = w.told({"error"});
    w.ask_alone(method, with_id(R"("1")"));
    CHECK(w.told({"error"}) == foreign);
    CHECK(w.told({"error", "code"}) == "-32602");
    CHECK(w.told({"error", "message"}).find("Task not found") != std::string::npos);
    w.ask_alone(method, R"("taskId":7)");
    CHECK(w.told({"error", "message"}).find("requires params.taskId") != std::string::npos);
  }
  CHECK(w.servers["m1"].got.size() == before);
}

TEST_CASE("a task for a client that has declared nothing is an invalid response") {
  TaskWorld w({"m1"});
  w.ask("tools/call", call_of("m1__job"));
  CHECK(w.sent("m1", {extensions[0], extensions[1], extensions[2], extensions[3]}).empty());
  w.result("m1", R"({"resultType":"task","taskId":"1","status":"working"})");
  CHECK(w.told({"error", "message"}).find("unknown type") != std::string::npos);
}

TEST_CASE("2025-11-25: the experimental form with servers whose ids collide") {
  TaskWorld w({"s1", "s2"});
  std::string ids[2];
  for (const int i : {0, 1}) {
    const std::string server = i == 0 ? "s1" : "s2";
    w.ask("tools/call", call_of(server + "__job", as_task));
    CHECK(w.sent(server, {"params", "task"}) == R"({"ttl":1000})");
    w.result(server, R"({"task":{"taskId":"1","status":"working","ttl":1000},"_meta":{"k":1}})");
    ids[i] = w.told({"result", "task", "taskId"});
    CHECK(w.told({"result"}) ==
          R"({"task":{"taskId":)" + ids[i] + R"(,"status":"working","ttl":1000},"_meta":{"k":1}})");
  }
  CHECK(ids[0] != ids[1]);
  for (const int i : {0, 1}) {
    const std::string server = i == 0 ? "s1" : "s2";
    for (const std::string_view method : {"tasks/get", "tasks/cancel"}) {
      w.ask(method, with_id(ids[i]));
      CHECK(w.sent(server, {"params", "taskId"}) == R"("1")");
      w.result(server, R"({"taskId":"1","status":"working"})");
      CHECK(w.told({"result"}) == R"({"taskId":)" + ids[i] + R"(,"status":"working"})");
    }
    w.ask("tasks/result", with_id(ids[i]));
    CHECK(w.sent(server, {"method"}) == R"("tasks/result")");
    w.result(server,
             R"({"content":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"1"}}})");
    CHECK(w.told({"result", "_meta", "io.modelcontextprotocol/related-task", "taskId"}) == ids[i]);
  }
  // A task of a client with a session does not belong to a client of 2026-07-28 over HTTP.
  w.ask_alone("tasks/get", with_id(ids[0]));
  CHECK(w.told({"error", "code"}) == "-32602");
  w.ask("tasks/list", "");
  CHECK(w.told({"error", "code"}) == "-32601");
}

TEST_CASE("the policy decides about the call only, and evaluates every result of the task") {
  evaluated.clear();
  TaskWorld w({"m1", "s1"}, &masking);
  evaluated.clear();
  SECTION("2026-07-28") {
    w.ask_alone("tools/call", call_of("m1__job"));
    w.result("m1",
             R"({"resultType":"task","taskId":"1","status":"working","statusMessage":"a secret"})");
    CHECK(w.told({"result", "statusMessage"}) == R"("a ***")");
    CHECK(w.told({"result", "resultType"}) == R"("task")");
    const std::string id = w.told({"result", "taskId"});
    CHECK(id.size() > 60);
    CHECK(evaluated.starts_with("tools/call job\ntools/call job {"));
    evaluated.clear();
    w.ask_alone("tasks/get", with_id(id));
    w.result("m1", R"({"resultType":"complete","taskId":"1","status":"completed","result":)"
                   R"({"content":[{"type":"text","text":"my secret"}]}})");
    CHECK(evaluated == R"(tools/call job {"io.modelcontextprotocol/task":{"resultType":"complete",)"
                       R"("status":"completed"},"content":[{"type":"text","text":"my secret"}]})"
                       "\n");
    CHECK(w.told({"result", "taskId"}) == id);
    CHECK(w.told({"result", "status"}) == R"("completed")");
    CHECK(w.told({"result", "result"}) == R"({"content":[{"type":"text","text":"my ***"}]})");
    w.ask_alone("tasks/get", with_id(id));
    w.result("m1", R"({"taskId":"1","status":"failed","error":{"code":1,"message":"secret"}})");
    CHECK(w.got.find("secret") == std::string::npos);
    CHECK(w.told({"error", "message"}).find("blocked by policy") != std::string::npos);
  }
  SECTION("2025-11-25") {
    w.ask("tools/call", call_of("s1__job", as_task));
    w.result("s1", R"({"task":{"taskId":"1","status":"working","statusMessage":"a secret"}})");
    CHECK(w.told({"result", "task", "statusMessage"}) == R"("a ***")");
    const std::string id = w.told({"result", "task", "taskId"});
    evaluated.clear();
    w.ask("tasks/result", with_id(id));
    w.result("s1", R"({"content":[{"type":"text","text":"my secret"}],"_meta":{)"
                   R"("io.modelcontextprotocol/related-task":{"taskId":"1"}}})");
    CHECK(evaluated.starts_with(R"(tools/call job {"content":)"));
    CHECK(w.told({"result", "content"}) == R"([{"type":"text","text":"my ***"}])");
    CHECK(w.told({"result", "_meta", "io.modelcontextprotocol/related-task", "taskId"}) == id);
  }
}

TEST_CASE("a client of 2025-11-25 gets a task of a server of 2026-07-28") {
  TaskWorld w({"m1"});
  w.ask("tools/call", call_of("m1__job", as_task));
  CHECK(w.sent("m1", {"params", "task"}).empty());
  CHECK(w.sent("m1", {extensions[0], extensions[1], extensions[2], extensions[3]}) ==
        R"({"io.modelcontextprotocol/tasks":{}})");
  w.result("m1",
           R"({"resultType":"task","taskId":"1","status":"working","ttlMs":9,"pollIntervalMs":1})");
  const std::string id = w.told({"result", "task", "taskId"});
  CHECK(w.told({"result"}) ==
        R"({"task":{"taskId":)" + id + R"(,"status":"working","ttl":9,"pollInterval":1}})");
  const std::string working = R"({"taskId":"1","status":"working","ttlMs":9,"pollIntervalMs":1})";

  SECTION("tasks/get") {
    w.ask("tasks/get", with_id(id));
    CHECK(w.sent("m1", {"params", "taskId"}) == R"("1")");
    w.result("m1", R"({"taskId":"1","status":"completed","ttlMs":9,"result":{"content":[]}})");
    CHECK(w.told({"result"}) == R"({"taskId":)" + id + R"(,"status":"completed","ttl":9})");
  }
  SECTION("tasks/cancel is followed by tasks/get") {
    w.ask("tasks/cancel", with_id(id));
    CHECK(w.sent("m1", {"method"}) == R"("tasks/cancel")");
    w.result("m1", R"({"resultType":"complete"})");
    CHECK(w.sent("m1", {"method"}) == R"("tasks/get")");
    w.result("m1", R"({"taskId":"1","status":"cancelled","ttlMs":9})");
    CHECK(w.told({"result"}) == R"({"taskId":)" + id + R"(,"status":"cancelled","ttl":9})");
  }
  SECTION("tasks/result waits for the end of the task") {
    const std::size_t before = w.servers["m1"].got.size();
    w.ask("tasks/result", with_id(id));
    CHECK(w.sent("m1", {"method"}) == R"("tasks/get")");
    w.result("m1", working);
    CHECK(w.got.empty());
    w.await("m1", before + 2);
    CHECK(w.sent("m1", {"method"}) == R"("tasks/get")");
    CHECK(w.sent("m1", {"params", "taskId"}) == R"("1")");
    w.result("m1", R"({"taskId":"1","status":"completed","result":{"resultType":"complete",)"
                   R"("content":[]}})");
    CHECK(w.told({"result"}) ==
          R"({"content":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":)" + id +
              "}}}");
  }
  SECTION("tasks/result of a task that has failed or was cancelled") {
    w.ask("tasks/result", with_id(id));
    w.result("m1", R"({"taskId":"1","status":"failed","error":{"code":-5,"message":"no disk"}})");
    CHECK(w.told({"error"}) == R"({"code":-5,"message":"no disk"})");
    w.ask("tasks/result", with_id(id));
    w.result("m1", R"({"taskId":"1","status":"cancelled"})");
    CHECK(w.told({"error", "message"}).find("was cancelled") != std::string::npos);
  }
  SECTION("the client is asked for the task's input, once for each key") {
    const std::string asks =
        R"({"taskId":"1","status":"input_required","pollIntervalMs":1,"inputRequests":{"k":{)"
        R"("method":"elicitation/create","params":{"message":"Which name?"}}}})";
    w.ask("tasks/result", with_id(id));
    w.result("m1", asks);
    CHECK(w.told({"method"}) == R"("elicitation/create")");
    const std::string number = w.told({"id"});
    const std::size_t before = w.answers, sent = w.servers["m1"].got.size();
    w.ask(R"({"jsonrpc":"2.0","id":)" + number +
          R"(,"result":{"action":"accept","content":{"name":"Ada"}}})");
    CHECK(w.sent("m1", {"method"}) == R"("tasks/update")");
    CHECK(w.sent("m1", {"params", "taskId"}) == R"("1")");
    CHECK(w.sent("m1", {"params", "inputResponses"}) ==
          R"({"k":{"action":"accept","content":{"name":"Ada"}}})");
    w.result("m1", R"({"resultType":"complete"})");
    CHECK(w.sent("m1", {"method"}) == R"("tasks/get")");
    CHECK(w.sent("m1", {"params", "inputResponses"}).empty());
    w.result("m1", asks);  // the server has not handled the input yet
    CHECK(w.answers == before);
    w.await("m1", sent + 3);
    w.result("m1", R"({"taskId":"1","status":"completed","result":{"content":[]}})");
    CHECK(w.told({"result", "content"}) == "[]");
  }
}

TEST_CASE("a bridged request about a task is sent with its id and trace context only") {
  TaskWorld w({"m1"});
  w.ask("tools/call", call_of("m1__job", as_task));
  w.result("m1", R"({"resultType":"task","taskId":"1","status":"working"})");
  const std::string id = w.told({"result", "task", "taskId"});
  w.ask(
      "tasks/result",
      with_id(id) + R"(,"inputResponses":{"k":{"action":"accept"}},"requestState":"x","pad":")" +
          std::string(100'000, 'p') +
          R"(","_meta":{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","pad":"p"})");
  const auto reduced = [&w] {
    CHECK(w.sent("m1", {"params", "taskId"}) == R"("1")");
    CHECK(w.sent("m1", {"params", "_meta", "traceparent"}) ==
          R"("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")");
    CHECK(w.sent("m1", {"params", "_meta", "pad"}).empty());
    CHECK(w.sent("m1", {"params", "requestState"}).empty());
    CHECK(w.servers["m1"].got.back().size() < 2'000);
  };
  reduced();
  CHECK(w.sent("m1", {"params", "inputResponses"}).empty());
  w.result("m1", R"({"taskId":"1","status":"input_required","inputRequests":{"k":{)"
                 R"("method":"elicitation/create","params":{"message":"Which?"}}}})");
  w.ask(R"({"jsonrpc":"2.0","id":)" + w.told({"id"}) + R"(,"result":{"action":"decline"}})");
  CHECK(w.sent("m1", {"method"}) == R"("tasks/update")");
  CHECK(w.sent("m1", {"params", "inputResponses"}) == R"({"k":{"action":"decline"}})");
  CHECK(w.servers["m1"].got.back().find("accept") == std::string::npos);
  reduced();
  // The client is asked for a new key, even if the answered key is still listed.
  w.result("m1", R"({"resultType":"complete"})");
  w.result("m1", R"({"taskId":"1","status":"input_required","inputRequests":{"k":{)"
                 R"("method":"elicitation/create","params":{"message":"Which?"}},"n":{)"
                 R"("method":"elicitation/create","params":{"message":"New?"}}}})");
  CHECK(w.told({"params", "message"}) == R"("New?")");
  w.ask(R"({"jsonrpc":"2.0","id":)" + w.told({"id"}) + R"(,"result":{"action":"cancel"}})");
  CHECK(w.sent("m1", {"params", "inputResponses"}) == R"({"n":{"action":"cancel"}})");
  // Between two requests to the server, the call may have run.
  w.result("m1", R"({"resultType":"complete"})");
  w.result("m1", R"({"taskId":"1","status":"working"})");
  w.got.clear();
  w.router->parts().calls.ends.end_all();
  CHECK(w.told({"error", "message"}).find("may have run") != std::string::npos);
}

TEST_CASE("a task id is valid only on the connection that has the task") {
  TaskWorld w({"s1"});
  w.ask("tools/call", call_of("s1__job", as_task));
  w.result("s1", R"({"task":{"taskId":"1","status":"working","ttl":1}})");
  const std::string id = w.told({"result", "task", "taskId"});
  const bh_lane lane = w.servers["s1"].lane;
  w.ask("tasks/get", with_id(id));
  CHECK(w.servers["s1"].lane == lane);
  CHECK(w.sent("s1", {"params", "taskId"}) == R"("1")");
  w.result("s1", R"({"taskId":"1","status":"working","ttl":1})");
  CHECK(w.told({"result", "taskId"}) == id);
  // The server restarts: the new process may have another task with this id.
  w.router->parts().servers.wires.down(lane, LaneFailure({BH_E_UNAVAILABLE, "exited"}, 1));
  for (int i = 0; i < 2'000 && w.servers["s1"].lane == lane; ++i) w.reactor->poll(10);
  REQUIRE(w.servers["s1"].lane != lane);
  const std::size_t before = w.servers["s1"].got.size();
  w.ask("tasks/get", with_id(id));
  CHECK(w.told({"error", "code"}) == "-32602");
  CHECK(w.told({"error", "message"}).find("Task not found") != std::string::npos);
  CHECK(w.servers["s1"].got.size() == before);
}

TEST_CASE("a client of 2026-07-28 gets a task of a server of 2025-11-25") {
  TaskWorld w({"s1"});
  w.ask_alone("tools/call", call_of("s1__plain"));
  CHECK(w.sent("s1", {"params", "task"}).empty());
  w.result("s1", R"({"content":[]})");
  CHECK(w.told({"result", "resultType"}) == R"("complete")");

  w.ask_alone("tools/call", call_of("s1__job"));
  CHECK(w.sent("s1", {"params", "task"}) == "{}");
  CHECK(w.sent("s1", {"params", "_meta"}) == "{}");
  w.result("s1", R"({"task":{"taskId":"1","status":"working","ttl":9,"pollInterval":1}})");
  const std::string id = w.told({"result", "taskId"});
  CHECK(w.told({"result", "resultType"}) == R"("task")");
  CHECK(w.told({"result", "ttlMs"}) == "9");
  CHECK(w.told({"result", "pollIntervalMs"}) == "1");

  SECTION("tasks/get of a task that has not ended") {
    w.ask_alone("tasks/get", with_id(id));
    w.result("s1", R"({"taskId":"1","status":"working","ttl":9})");
    CHECK(w.told({"result", "status"}) == R"("working")");
    CHECK(w.told({"result", "taskId"}) == id);
    CHECK(w.told({"result", "ttlMs"}) == "9");
  }
  SECTION("tasks/get of a task that has ended is followed by tasks/result") {
    w.ask_alone("tasks/get", with_id(id));
    w.result("s1", R"({"taskId":"1","status":"failed","ttl":9})");
    CHECK(w.sent("s1", {"method"}) == R"("tasks/result")");
    CHECK(w.sent("s1", {"params", "taskId"}) == R"("1")");
    SECTION("with a result") {
      w.result("s1", R"({"isError":true,"content":[],"_meta":{)"
                     R"("io.modelcontextprotocol/related-task":{"taskId":"1"}}})");
      CHECK(w.told({"result", "status"}) == R"("completed")");
      CHECK(w.told({"result", "result"}) == R"({"isError":true,"content":[]})");
    }
    SECTION("with an error") {
      w.answer("s1", "error", R"({"code":-5,"message":"no disk"})");
      CHECK(w.told({"result", "status"}) == R"("failed")");
      CHECK(w.told({"result", "error"}) == R"({"code":-5,"message":"no disk"})");
    }
    CHECK(w.told({"result", "taskId"}) == id);
    CHECK(w.told({"result", "resultType"}) == R"("complete")");
  }
  SECTION("tasks/cancel") {
    w.ask_alone("tasks/cancel", with_id(id));
    w.result("s1", R"({"taskId":"1","status":"cancelled","ttl":9})");
    CHECK(w.told({"result", "resultType"}) == R"("complete")");
    CHECK(w.told({"result", "taskId"}).empty());
  }
  SECTION("tasks/update does not exist there") {
    const std::size_t before = w.servers["s1"].got.size();
    w.ask_alone("tasks/update", with_id(id) + R"(,"inputResponses":{})");
    CHECK(w.told({"error", "code"}) == "-32602");
    CHECK(w.servers["s1"].got.size() == before);
  }
}

TEST_CASE("nothing that the policy has not evaluated reaches a client with a task") {
  TaskWorld w({"m1", "s1"}, &masking);
  const std::string both = R"("result":{"content":[]},"error":{"code":1,"message":"secret"}})";
  const auto check_refused = [&w](std::string_view reason) {
    CHECK(w.got.find("secret") == std::string::npos);
    CHECK(w.told({"result"}).empty());
    CHECK_THAT(w.told({"error", "message"}), Catch::Contains(std::string(reason)));
  };
  SECTION("2026-07-28") {
    w.ask_alone("tools/call", call_of("m1__job"));
    w.result("m1", R"({"resultType":"task","taskId":"1","status":"failed",)" + both);
    check_refused("both a result and an error");
    w.ask_alone("tools/call", call_of("m1__job"));
    w.result("m1", R"({"resultType":"task","taskId":"1","status":"working"})");
    const std::string id = w.told({"result", "taskId"});
    w.ask_alone("tasks/get", with_id(id));
    w.result("m1", R"({"taskId":"1","status":"failed",)" + both);
    check_refused("both a result and an error");
    for (const std::string_view text : {"secret", "public"}) {
      w.ask_alone("tasks/get", with_id(id));
      w.result("m1", R"({"taskId":"1","status":"completed","result":{"content":[],)"
                     R"("io.modelcontextprotocol/task":{"x":")" +
                         std::string(text) + R"("}}})");
      check_refused(text == "secret" ? "duplicate members" : "reserved member");
    }
  }
  SECTION("2025-11-25") {
    w.ask("tools/call", call_of("s1__job", as_task));
    w.result("s1", R"({"task":{"taskId":"1","status":"working"},)" + both);
    check_refused("both a result and an error");
  }
}

TEST_CASE("a rewritten result that asks for input has a sealed requestState") {
  TaskWorld w({"m1"}, &masking);
  for (const std::string_view type : {"resultType", "result\\u0054ype"}) {
    w.ask_alone("tools/call", call_of("m1__job"), "ada", R"({"elicitation":{}})");
    w.result("m1", R"({")" + std::string(type) +
                       R"(":"input_required","requestState":"raw","inputRequests":{"k":{"method":)"
                       R"("elicitation/create","params":{"message":"a secret"}}}})");
    CHECK(w.told({"result", "inputRequests", "k", "params", "message"}) == R"("a ***")");
    const std::string state = w.told({"result", "requestState"});
    CHECK(state.size() > 40);
    CHECK(state.find("raw") == std::string::npos);
    // The server gets its own state back.
    w.ask_alone("tools/call",
                call_of("m1__job", R"(,"inputResponses":{},"requestState":)" + state));
    CHECK(w.sent("m1", {"params", "requestState"}) == R"("raw")");
    w.result("m1", R"({"resultType":"complete","content":[]})");
  }
}

TEST_CASE("a client of 2026-07-28 receives only tasks that its call can create") {
  const bh_policy *policy = nullptr;
  SECTION("without a policy") {}
  SECTION("with a policy that rewrites the result") {
    policy = &masking;
  }
  TaskWorld w({"m1", "s1"}, policy);
  const std::string rest = R"(":"task","taskId":"raw","status":"working","x":"secret"})";
  for (const std::string_view type : {"resultType", "result\\u0054ype"}) {
    const std::string task = R"({")" + std::string(type) + rest;
    const auto check_refused = [&w] {
      CHECK(w.got.find("raw") == std::string::npos);
      CHECK(w.told({"result"}).empty());
      CHECK(w.told({"error", "code"}) == "-32603");
    };
    w.ask_alone("tools/call", call_of("s1__plain"));
    w.result("s1", task);
    check_refused();
    w.ask_alone("tools/call", call_of("s1__job"));
    w.result("s1", task);
    check_refused();
    w.ask_alone("tools/call", call_of("m1__job"), "ada", "{}");
    w.result("m1", task);
    check_refused();
  }
}

TEST_CASE("a session of an older revision does not send params.task to a server") {
  for (const std::string revision : {"2025-06-18", "2025-11-25"}) {
    TaskWorld w({"s1"}, nullptr, revision);
    const bool newest = revision == "2025-11-25";
    w.ask("tools/call", call_of("s1__job", as_task));
    CHECK(w.sent("s1", {"params", "task"}) == (newest ? R"({"ttl":1000})" : ""));
    CHECK(w.sent("s1", {"params", "arguments"}) == "{}");
    w.result("s1", R"({"content":[]})");
    CHECK(w.told({"result", "content"}) == "[]");
    w.ask("tools/call", R"("ta\u0073k":{},)" + call_of("s1__job"));
    CHECK((w.sent("s1", {"params"}).find(R"("ta\u0073k")") != std::string::npos) == newest);
    CHECK(w.sent("s1", {"params", "name"}) == R"("job")");
    w.result("s1", R"({"content":[]})");
  }
}

TEST_CASE("a server that cannot run tasks does not receive params.task") {
  TaskWorld w({"o1", "p1", "s1"});
  for (const std::string server : {"o1", "p1", "s1"}) {
    const bool runs = server == "s1";
    for (const std::string_view member : {R"("task":{"ttl":1000},)", R"("ta\u0073k":{},)"}) {
      w.ask("tools/call", std::string(member) + call_of(server + "__job"));
      CHECK((w.sent(server, {"params"}).find(R"(k":{)") != std::string::npos) == runs);
      CHECK(w.sent(server, {"params", "name"}) == R"("job")");
      CHECK(w.sent(server, {"params", "arguments"}) == "{}");
      w.result(server, R"({"content":[{"type":"text","text":"done"}]})");
      CHECK(w.told({"result", "content"}) == R"([{"type":"text","text":"done"}])");
    }
    // Its tool declares taskSupport, which has no effect without the capability.
    w.ask_alone("tools/call", call_of(server + "__job"));
    CHECK(w.sent(server, {"params", "task"}) == (runs ? "{}" : ""));
    w.result(server, R"({"content":[]})");
    CHECK(w.told({"result", "resultType"}) == R"("complete")");
  }
}

TEST_CASE("rules about input see the tool of a task") {
  TaskWorld w({"m1", "s1"}, &judging_input);
  const auto answer = [&w] {
    CHECK(w.told({"method"}) == R"("elicitation/create")");
    w.ask(R"({"jsonrpc":"2.0","id":)" + w.told({"id"}) +
          R"(,"result":{"action":"accept","content":{}}})");
  };
  SECTION("a server of 2026-07-28") {
    w.ask("tools/call", call_of("m1__job", as_task));
    w.result("m1", R"({"resultType":"task","taskId":"1","status":"working"})");
    w.ask("tasks/result", with_id(w.told({"result", "task", "taskId"})));
    evaluated.clear();
    w.result("m1", R"({"taskId":"1","status":"input_required","inputRequests":{"k":{)"
                   R"("method":"elicitation/create","params":{"message":"m"}}}})");
    answer();
  }
  SECTION("a server of 2025-11-25") {
    w.ask("tools/call", call_of("s1__job", as_task));
    w.result("s1", R"({"task":{"taskId":"1","status":"working"}})");
    w.ask("tasks/result", with_id(w.told({"result", "task", "taskId"})));
    evaluated.clear();
    w.router->parts().servers.wires.message(
        w.servers["s1"].lane, 0,
        R"({"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"m",)"
        R"("requestedSchema":{"type":"object","properties":{}}}})");
    answer();
  }
  CHECK(evaluated == "elicitation/create job\nelicitation/create job\n");
}

TEST_CASE("a server may ask a client of 2026-07-28 only for input that the client has declared") {
  TaskWorld w({"m1"});
  const std::string form = R"({"method":"elicitation/create","params":{"message":"?"}})",
                    url = R"({"method":"elicitation/create","params":{"mode":"url","url":"x:y"}})",
                    sampling = R"({"method":"sampling/createMessage","params":{}})",
                    roots = R"({"method":"roots/list"})";
  const auto outcome = [&](const std::string &requests, const std::string &capabilities) {
    w.ask_alone("tools/call", call_of("m1__job"), "ada", capabilities);
    w.result("m1", R"({"resultType":"input_required","inputRequests":)" + requests + "}");
    CHECK(w.told({"error", "code"}) == (w.told({"result"}).empty() ? "-32603" : ""));
    return w.told({"result", "inputRequests"}) + w.told({"error", "message"});
  };
  const std::string all = R"({"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}})";
  for (const std::string &request : {form, url, sampling, roots}) {
    const std::string one = R"({"k":)" + request + "}",
                      two = R"({"a":)" + form + R"(,"b":)" + request + "}";
    CHECK((outcome(one, all) == one) == (request != roots));  // the server has roots = "off"
    CHECK((outcome(two, all) == two) == (request != roots));
    const bool is_form = request == form;
    CHECK((outcome(two, R"({"elicitation":{}})") == two) == is_form);
    CHECK(outcome(one, "{}").find("that was not declared to it") != std::string::npos);
  }
  CHECK(outcome(R"({"k":)" + roots + R"(},"input\u0052equests":{"k":)" + sampling + "}",
                R"({"roots":{}})")
            .find("duplicate inputRequests") != std::string::npos);
  CHECK(outcome(R"({"k":{"method":"tools/list"}})", all).find("unknown kind of input") !=
        std::string::npos);
  CHECK(outcome(R"([])", all).find("not an object") != std::string::npos);
}

TEST_CASE("an error about capabilities reaches only a client of 2026-07-28 that lacks one") {
  TaskWorld w({"m1"});
  const std::string lacks =
      R"({"code":-32021,"message":"m","data":{"requiredCapabilities":{"roots":{},"sampling":{}}}})";
  const auto code_for = [&](const std::string &capabilities) {
    w.ask_alone("tools/call", call_of("m1__job"), "ada", capabilities);
    w.answer("m1", "error", lacks);
    return w.told({"error", "code"});
  };
  CHECK(code_for("{}") == "-32021");
  CHECK(code_for(R"({"roots":{}})") == "-32021");
  CHECK(code_for(R"({"roots":{},"sampling":{}})") == "-32603");
  const std::string text = w.told({"error", "message"});
  CHECK(text.find("requires roots, sampling, which the gateway does not pass on") !=
        std::string::npos);
}
