// Tests requests of a server of 2025-11-25 about its tasks: which client receives them. Also tests
// which input a server of 2026-07-28 may request.
#include <catch2/catch.hpp>
#include <string>
#include <string_view>

#include "route/clients.hpp"
#include "route/task_world.hpp"

using namespace bulkhead;

namespace {

constexpr std::string_view related = "io.modelcontextprotocol/related-task";

// A shared server that runs a task for each of two clients. The server's ids are "1" and "2".
struct TwoClients : TaskWorld {
  bh_session clients[2];
  std::string ids[2];  // the ids that the clients have

  TwoClients() : TaskWorld({"s1"}), clients{session, open_client()} {
    for (const std::size_t i : {0u, 1u}) ids[i] = create(i, std::to_string(i + 1));
  }
  std::string create(std::size_t client, const std::string &id) {
    session = clients[client];
    ask("tools/call", R"("name":"s1__job","arguments":{},"task":{})");
    result("s1", R"({"task":{"taskId":")" + id + R"(","status":"working","ttl":1}})");
    return told({"result", "task", "taskId"});
  }
  // The client asks for the result of its task.
  void wait_for_result(std::size_t client) {
    session = clients[client];
    ask("tasks/result", R"("taskId":)" + ids[client]);
    CHECK(sent("s1", {"params", "taskId"}) == "\"" + std::to_string(client + 1) + "\"");
  }
  void check_asked(std::size_t client, std::string_view method) const {
    CHECK(told({"method"}) == "\"" + std::string(method) + "\"");
    CHECK(got_for == clients[client]);
    CHECK(told({"params", "_meta", related}) == R"({"taskId":)" + ids[client] + "}");
    CHECK(told({"params", "_meta", "x"}) == "1");
    CHECK(ids[client].size() > 60);
  }
  // The client answers the request that was sent to it last.
  void answer_as(std::size_t client, const std::string &answer) {
    session = clients[client];
    ask(R"({"jsonrpc":"2.0","id":)" + told({"id"}) + R"(,"result":{"x":")" + answer + R"("}})");
    CHECK(replied("s1", {"id"}) == R"("q")");
    CHECK(replied("s1", {"result", "x"}) == "\"" + answer + "\"");
  }
  void check_refused(std::string_view error_code) const {
    CHECK(got.empty());
    CHECK(got_for == 0);
    CHECK(replied("s1", {"id"}) == R"("q")");
    CHECK(replied("s1", {"error", "code"}) == error_code);
  }
};

constexpr std::string_view methods[] = {"elicitation/create", "sampling/createMessage"};

}  // namespace

TEST_CASE("a request about a task reaches the client of the task, not one that waits for another") {
  for (const std::size_t waiting : {0u, 1u}) {
    TwoClients w;
    w.wait_for_result(waiting);
    for (const std::size_t owner : {0u, 1u}) {
      for (const std::string_view method : methods) {
        w.request_of("s1", method, "\"" + std::to_string(owner + 1) + "\"");
        w.check_asked(owner, method);
        w.answer_as(owner, "of " + std::to_string(owner));
      }
    }
  }
}

TEST_CASE("several clients wait for their tasks: each receives the requests about its own") {
  TwoClients w;
  w.wait_for_result(0);
  w.wait_for_result(1);
  for (const std::size_t owner : {1u, 0u}) {
    for (const std::string_view method : methods) {
      w.request_of("s1", method, owner == 0 ? R"("1")" : R"("\u0032")");
      w.check_asked(owner, method);
      w.answer_as(owner, "of " + std::to_string(owner));
    }
  }
}

TEST_CASE("a request about a task that is unknown, or not named clearly, is an error") {
  TwoClients w;
  w.wait_for_result(1);
  for (const std::string_view method : methods) {
    for (const std::string_view task :
         {R"("3")", R"("")", "2", "null", R"("2","taskId":"1")", R"("2","task\u0049d":"2")"}) {
      w.request_of("s1", method, task);
      w.check_refused("-32602");
    }
    w.request_of("s1", method, R"("2"},"io.modelcontextprotocol/related-\u0074ask":{"taskId":"1")");
    w.check_refused("-32602");
  }
  // The client's id of the task is not an id of the server.
  w.request_of("s1", methods[0], w.ids[1]);
  w.check_refused("-32602");
}

TEST_CASE("a request about a task of a client that is gone reaches no client") {
  for (const std::size_t gone : {0u, 1u}) {
    TwoClients w;
    const std::size_t waiting = 1 - gone;
    w.wait_for_result(waiting);
    w.router->parts().clients.sessions.close(w.clients[gone], BH_SESSION_GONE);
    const std::string task = "\"" + std::to_string(gone + 1) + "\"";
    w.request_of("s1", methods[0], task);
    CHECK(w.got.empty());
    CHECK(w.replied("s1", {"result", "action"}) == R"("cancel")");
    w.request_of("s1", methods[1], task);
    w.check_refused("-1");
    w.request_of("s1", methods[0], "\"" + std::to_string(waiting + 1) + "\"");
    w.check_asked(waiting, methods[0]);
  }
}

TEST_CASE("after a restart of the server, its ids are of other tasks") {
  TwoClients w;
  const bh_lane lane = w.servers["s1"].lane;
  w.router->parts().servers.wires.down(lane, LaneFailure({BH_E_UNAVAILABLE, "exited"}, 1));
  for (int i = 0; i < 2'000 && w.servers["s1"].lane == lane; ++i) w.reactor->poll(10);
  REQUIRE(w.servers["s1"].lane != lane);
  for (const std::string_view task : {R"("1")", R"("2")"}) {
    w.request_of("s1", methods[0], task);
    w.check_refused("-32602");
  }
  w.ids[1] = w.create(1, "1");
  w.request_of("s1", methods[0], R"("1")");
  w.check_asked(1, methods[0]);
}

TEST_CASE("a request about a task does not end with a poll of the task") {
  for (const std::size_t owner : {0u, 1u}) {
    for (const std::string_view method : methods) {
      for (const std::string_view poll : {"tasks/get", "tasks/cancel"}) {
        TwoClients w;
        w.session = w.clients[owner];
        w.ask(poll, R"("taskId":)" + w.ids[owner]);
        w.request_of("s1", method, "\"" + std::to_string(owner + 1) + "\"");
        w.check_asked(owner, method);
        const std::string asked = w.told({"id"});
        const std::size_t before = w.answers;
        w.result("s1", R"({"taskId":"1","status":"input_required","ttl":1})");
        CHECK(w.answers == before + 1);  // the client receives only the response to its poll
        CHECK(w.told({"result", "status"}) == R"("input_required")");
        CHECK(w.servers["s1"].replies.empty());
        w.ask(R"({"jsonrpc":"2.0","id":)" + asked + R"(,"result":{"x":"late"}})");
        CHECK(w.replied("s1", {"id"}) == R"("q")");
        CHECK(w.replied("s1", {"result", "x"}) == R"("late")");
      }
    }
  }
}

TEST_CASE("a request about a task ends with the last call that waits for the task's result") {
  TwoClients w;
  for (const std::string id : {"7", "8"}) {
    w.ask(R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":"tasks/result","params":{"taskId":)" +
          w.ids[1] + "}}");
  }
  w.ask("tasks/get", R"("taskId":)" + w.ids[1]);
  w.request_of("s1", methods[0], R"("2")");
  w.check_asked(1, methods[0]);
  const std::string asked = w.told({"id"});
  const auto cancel = [&w](const std::string &id) {
    w.got.clear();
    w.ask(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":)" + id +
          "}}");
  };
  cancel("8");
  CHECK(w.servers["s1"].replies.empty());
  cancel("7");
  CHECK(w.replied("s1", {"result", "action"}) == R"("cancel")");
  CHECK(w.servers["s1"].replies.size() == 1);
  // The client's answer is too late.
  w.ask(R"({"jsonrpc":"2.0","id":)" + asked + R"(,"result":{"action":"accept"}})");
  CHECK(w.servers["s1"].replies.size() == 1);
}

TEST_CASE("a server may ask a client of 2026-07-28 only for what was declared to this server") {
  TaskWorld w({"m1", "mfixed", "mown"});
  const std::string form = R"({"method":"elicitation/create","params":{"message":"?"}})",
                    roots = R"({"method":"roots/list"})";
  const auto outcome = [&](const std::string &server, const std::string &requests,
                           const std::string &capabilities) {
    const std::size_t before = w.servers.at(server).got.size();
    w.ask_alone("tools/call", R"("name":")" + server + R"(__job","arguments":{})", "ada",
                capabilities);
    w.await(server, before + 1);
    w.result(server, R"({"resultType":"input_required","inputRequests":)" + requests + "}");
    CHECK(w.told({"error", "code"}) == (w.told({"result"}).empty() ? "-32603" : ""));
    return w.told({"result", "inputRequests"}) + w.told({"error", "message"});
  };
  const std::string both = R"({"elicitation":{},"roots":{}})", one = R"({"r":)" + roots + "}",
                    two = R"({"f":)" + form + R"(,"r":)" + roots + "}",
                    refusal = "roots/list, which requires a capability that was not declared";
  for (const std::string server : {"m1", "mfixed", "mown"}) {
    INFO(server);
    const bool declared = server != "m1";
    for (const std::string &requests : {one, two}) {
      const std::string text = outcome(server, requests, both);
      CHECK((text == requests) == declared);
      CHECK((text.find(refusal) != std::string::npos) == !declared);
      CHECK(outcome(server, requests, R"({"elicitation":{}})").find(refusal) != std::string::npos);
    }
    const std::string only = R"({"f":)" + form + "}";
    CHECK(outcome(server, only, both) == only);
  }
}
