// Tests policies for tasks: decisions about tasks/update, and tasks that no client receives.
#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "route/clients.hpp"
#include "route/task_world.hpp"

using namespace bulkhead;

namespace {

struct Asked {
  std::string method, server, name, arguments, extra, definition;
};
std::vector<Asked> asked;                   // policy requests for a decision
std::vector<std::uint32_t> observed_flags;  // flags of the policy requests about results
std::uint64_t pending_number = 0;           // the result whose decision is pending

// Blocks requests that contain "forbidden" and results that contain "secret", and rewrites the
// arguments of requests that contain "rewritten". The decision about a result that contains "slow"
// is pending.
const bh_policy blocking = {
    sizeof(bh_policy),
    0,
    [](void *) -> std::uint32_t {
      return BH_POLICY_DECIDES | BH_POLICY_READS_RESULTS | BH_POLICY_READS_ARGUMENTS |
             BH_POLICY_READS_DEFINITION;
    },
    [](void *, const bh_policy_request *request, bh_verdict *out, bh_error *) -> bh_status {
      const auto text = [](bh_str part) { return std::string(bh::view(part)); };
      asked.push_back({text(request->method), text(request->server), text(request->name),
                       text(request->arguments), text(request->extra), text(request->definition)});
      const bool allowed = asked.back().extra.find("forbidden") == std::string::npos;
      out->verdict = allowed ? BH_VERDICT_ALLOW : BH_VERDICT_BLOCK;
      if (asked.back().extra.find("rewritten") == std::string::npos) return BH_OK;
      out->verdict = BH_VERDICT_REWRITE;
      out->arguments = bh::str(R"({"by":"policy"})");
      return BH_OK;
    },
    [](void *, const bh_policy_request *request, bh_str result, bh_verdict *out,
       bh_error *) -> bh_status {
      observed_flags.push_back(request->flags);
      const std::string_view text = bh::view(result);
      const bool allowed = text.find("secret") == std::string_view::npos;
      out->verdict = allowed ? BH_VERDICT_ALLOW : BH_VERDICT_BLOCK;
      if (text.find("slow") == std::string_view::npos) return BH_OK;
      pending_number = request->exchange;
      return BH_PENDING;
    },
    [](void *, const bh_policy_request *, bh_error *) -> bh_status { return BH_OK; },
    nullptr,
};

// A client and a server, each of either protocol generation.
struct PolicyWorld : TaskWorld {
  const bool client_stateless;
  const std::string server;

  PolicyWorld(bool stateless, const std::string &name)
      : TaskWorld({name}, &blocking), client_stateless(stateless), server(name) {
    asked.clear();
  }
  void call() {
    const std::string params = R"("name":")" + server + R"(__job","arguments":{})";
    if (client_stateless) return ask_alone("tools/call", params);
    ask("tools/call", params + R"(,"task":{})");
  }
  // The server creates the task. `status` is its status message.
  void create(const std::string &id, std::string_view status) {
    const std::string members = R"("taskId":")" + id + R"(","status":"working","statusMessage":")" +
                                std::string(status) + "\"";
    result(server, server.starts_with("m") ? R"({"resultType":"task","ttlMs":1,)" + members + "}"
                                           : R"({"task":{"ttl":1,)" + members + "}}");
  }
  std::string told_id() const {
    return client_stateless ? told({"result", "taskId"}) : told({"result", "task", "taskId"});
  }
  std::size_t requests() const { return servers.at(server).got.size(); }
  // Checks that the server has received `count` requests, of which the last one cancels the task.
  void check_cancelled(const std::string &id, std::size_t count) const {
    CHECK(requests() == count);
    CHECK(sent(server, {"method"}) == R"("tasks/cancel")");
    CHECK(sent(server, {"params", "taskId"}) == "\"" + id + "\"");
    const std::string extensions = sent(
        server, {"params", "_meta", "io.modelcontextprotocol/clientCapabilities", "extensions"});
    CHECK(extensions == (server.starts_with("m") ? R"({"io.modelcontextprotocol/tasks":{}})" : ""));
  }
};

struct Pair {
  bool client_stateless;
  const char *server;
};
constexpr Pair pairs[] = {{false, "s1"}, {true, "m1"}, {false, "m1"}, {true, "s1"}};

}  // namespace

TEST_CASE("tasks/update is decided like a call of the task's tool, with its input") {
  TaskWorld w({"m1", "m2"}, &blocking);
  std::string ids[2];
  const std::string servers[] = {"m1", "m2"};
  for (const int i : {0, 1}) {
    w.ask_alone("tools/call", R"("name":")" + servers[i] + R"(__job","arguments":{"a":1})");
    w.result(servers[i], R"({"resultType":"task","taskId":"1","status":"working"})");
    ids[i] = w.told({"result", "taskId"});
  }
  const auto update = [&](int i, const std::string &value) {
    asked.clear();
    const std::string inputs = R"("inputResponses":{"k":{"action":"accept","content":)" + value;
    w.ask_alone("tasks/update", R"("taskId":)" + ids[i] + "," + inputs + "}}");
    return "{" + inputs + "}}}";
  };
  for (const int i : {0, 1}) {
    const std::string extra = update(i, R"({"name":"Ada"})");
    REQUIRE(asked.size() == 1);
    CHECK(asked[0].method == "tools/call");
    CHECK(asked[0].server == servers[i]);
    CHECK(asked[0].name == "job");
    CHECK(asked[0].arguments.empty());
    CHECK(asked[0].extra == extra);
    observed_flags.clear();
    CHECK(mcp::member(asked[0].definition, "name") == R"("job")");
    CHECK(w.sent(servers[i], {"method"}) == R"("tasks/update")");
    CHECK(w.sent(servers[i], {"params", "taskId"}) == R"("1")");
    w.result(servers[i], R"({"resultType":"complete"})");
    CHECK(w.told({"result", "resultType"}) == R"("complete")");
    CHECK(observed_flags == std::vector<std::uint32_t>{0});

    const std::size_t before = w.servers[servers[i]].got.size();
    for (const std::string_view value : {R"({"name":"forbidden"})", R"({"a":1,"a":2})"}) {
      update(i, std::string(value));
      CHECK(w.told({"error", "code"}) == "-32600");
      CHECK(w.told({"error", "message"}).find("blocked by policy") != std::string::npos);
      CHECK(w.servers[servers[i]].got.size() == before);
    }
    // Policies do not decide about the other requests. Their results are flagged accordingly.
    asked.clear();
    observed_flags.clear();
    for (const std::string_view method : {"tasks/get", "tasks/cancel"}) {
      w.ask_alone(method, R"("taskId":)" + ids[i]);
      w.result(servers[i], R"({"resultType":"complete","taskId":"1","status":"working"})");
      CHECK(w.told({"result", "resultType"}) == R"("complete")");
    }
    CHECK(asked.empty());
    CHECK(observed_flags == std::vector<std::uint32_t>(2, BH_REQUEST_UNDECIDED));
  }
}

TEST_CASE("tasks/update has no arguments for rules, whatever its members are") {
  PolicyWorld w(true, "m1");
  w.call();
  w.create("1", "public");
  const std::string id = w.told_id();
  const auto update = [&](const std::string &members) {
    asked.clear();
    w.ask_alone("tasks/update", R"("taskId":)" + id + "," + members);
    REQUIRE(asked.size() == 1);
    CHECK(asked[0].name == "job");
    CHECK(asked[0].arguments.empty());
    CHECK(asked[0].extra == "{" + members + "}");
  };
  for (const std::string value : {R"({"path":"/allowed"})", R"("text")", "{}"}) {
    update(R"("arguments":)" + value + R"(,"inputResponses":{"k":{}})");
    CHECK(w.sent("m1", {"params", "arguments"}) == value);
    w.result("m1", R"({"resultType":"complete"})");
    CHECK(w.told({"result", "resultType"}) == R"("complete")");
  }
  // Policies cannot rewrite the member `arguments` either.
  const std::size_t before = w.requests();
  for (const std::string value : {R"({"path":"/rewritten"})", R"({"a":"rewritten"})"}) {
    update(R"("inputResponses":{"k":{}},"arguments":)" + value);
    CHECK(w.told({"error", "message"}).find("no arguments to rewrite") != std::string::npos);
    CHECK(w.requests() == before);
  }
}

TEST_CASE("a task whose description is blocked is cancelled at its server, once") {
  for (const auto &[client_stateless, server] : pairs) {
    PolicyWorld w(client_stateless, server);
    std::size_t count = 0;
    for (const std::string id : {"1", "2"}) {
      w.call();
      w.create(id, "a secret");
      CHECK(w.told({"error", "message"}).find("blocked by policy") != std::string::npos);
      w.check_cancelled(id, count += 2);
      // The server's response to the cancellation reaches no client.
      const std::size_t answers = w.answers;
      w.answer(server, id == "1" ? "result" : "error", R"({"code":-32602,"message":"ended"})");
      CHECK(w.answers == answers);
      CHECK(w.requests() == count);
      if (client_stateless || w.servers[server].stateless) continue;
      w.request_of(server, "elicitation/create", "\"" + id + "\"");
      CHECK(w.got.empty());
      CHECK(w.replied(server, {"error", "code"}) == "-32602");
    }
    // A task that the client receives continues.
    w.call();
    w.create("3", "public");
    CHECK(w.told_id().size() > 60);
    CHECK(w.requests() == count + 1);
  }
}

TEST_CASE("a task that its client does not receive is cancelled at its server") {
  for (const std::string server : {"s1", "m1"}) {
    SECTION("the client leaves while the policy evaluates the task: " + server) {
      PolicyWorld w(false, server);
      w.session = w.open_client();
      std::size_t count = 0;
      for (const std::string id : {"1", "2"}) {
        w.session = w.open_client();
        w.call();
        w.create(id, "slow");
        CHECK(w.requests() == count + 1);
        w.router->parts().clients.sessions.close(w.session, BH_SESSION_GONE);
        w.check_cancelled(id, count += 2);
        w.router->parts().policy.decided(pending_number, {});
        CHECK(w.requests() == count);
      }
    }
    SECTION("the client has cancelled its request before the task was created: " + server) {
      PolicyWorld w(false, server);
      std::size_t count = 0;
      for (const std::string id : {"1", "2"}) {
        w.call();
        w.ask(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})");
        const std::size_t answers = w.answers;
        w.create(id, "public");
        CHECK(w.answers == answers);
        w.check_cancelled(id, count += 2);
      }
    }
    SECTION("the policy allows it after a while: it is not cancelled: " + server) {
      PolicyWorld w(false, server);
      w.call();
      w.create("1", "slow");
      w.router->parts().policy.decided(pending_number, {});
      CHECK(w.told_id().size() > 60);
      CHECK(w.requests() == 1);
    }
  }
}

TEST_CASE("a task that its client has received is not cancelled by another response") {
  for (const std::string server : {"s1", "m1"}) {
    PolicyWorld w(false, server);
    w.call();
    w.create("1", "public");
    CHECK(w.told_id().size() > 60);
    const std::size_t answers = w.answers;
    w.create("1", "again");
    CHECK(w.answers == answers);
    CHECK(w.requests() == 1);
  }
}

TEST_CASE("tasks/cancel is not sent to a server that does not declare it") {
  for (const std::string server : {"n1", "s1"}) {
    PolicyWorld w(false, server);
    w.call();
    w.create("1", "secret");
    CHECK(w.told({"error", "message"}).find("blocked by policy") != std::string::npos);
    CHECK(w.requests() == (server == "s1" ? 2 : 1));
  }
}

TEST_CASE("a server can cause only 16 open tasks/cancel, which take no place in max_in_flight") {
  for (const std::string server : {"s1", "m1"}) {
    PolicyWorld w(false, server);
    w.call();
    w.create("0", "public");
    std::size_t sent = w.requests(), next = 1;
    const std::size_t first = sent;
    const Lane &lane = *w.router->parts().servers.wires.find(w.servers[server].lane);
    // Sends results with ids that no exchange has, each with another task.
    const auto write_tasks = [&](std::size_t count) {
      for (; count != 0; --count, ++next) {
        const std::string id = std::to_string(next);
        const std::string task = R"("taskId":"t)" + id + R"(","status":"working")";
        w.router->parts().servers.wires.message(
            w.servers[server].lane, 0,
            R"({"jsonrpc":"2.0","id":)" + std::to_string(next * 4'000'037) + R"(,"result":)" +
                (server == "m1" ? R"({"resultType":"task",)" + task + "}}"
                                : R"({"task":{)" + task + "}}}"));
      }
    };
    write_tasks(40);
    CHECK(w.requests() == (sent += 16));
    CHECK(lane.in_flight == 0);
    for (const std::size_t i : {1u, 16u}) {
      const std::string &request = w.servers[server].got[first + i - 1];
      CHECK(mcp::member(request, "method") == R"("tasks/cancel")");
      CHECK(w.at(request, {"params", "taskId"}) == "\"t" + std::to_string(i) + "\"");
    }
    // Each response permits one more tasks/cancel.
    for (const std::string member : {"result", "error"}) {
      w.answer(server, member, R"({"code":-32602,"message":"ended"})");
      write_tasks(5);
      CHECK(w.requests() == ++sent);
      CHECK(w.sent(server, {"params", "taskId"}) == "\"t" + std::to_string(next - 5) + "\"");
    }
    // Calls are sent as before.
    w.call();
    CHECK(w.requests() == ++sent);
    CHECK(w.sent(server, {"method"}) == R"("tools/call")");
    CHECK(lane.in_flight == 1);
    w.result(server, R"({"resultType":"complete","content":[]})");
    CHECK(lane.in_flight == 0);
  }
}
