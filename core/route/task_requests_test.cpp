// Tests finding the server of a request about a task by the id that the client has received.
#include "route/task_requests.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "route/fakes.hpp"
#include "route/task_forms.hpp"
#include "route/view.hpp"

using namespace bulkhead;

namespace {

// A connector that opens each connection; its messages are discarded.
const bh_connector any_connector{
    sizeof(bh_connector),
    0,
    [](void *, bh_lane, const bh_lane_info *, void **, bh_error *) -> bh_status { return BH_OK; },
    [](void *, void *, const bh_lane_message *, bh_error *) -> bh_status { return BH_OK; },
    [](void *, void *, bh_str) {},
    [](void *, void *, std::uint64_t) {},
    [](void *, void *) {},
};

struct TaskWorld : FakeLaneHost {
  Sessions sessions{1};
  FakeClient client;
  Recorder recorder{*loop};
  RouterCounters counters;
  ClientAnswers answers{sessions, recorder, *loop, own_limits, counters, [] {}};
  TaskIds ids{{}};
  TaskRequests requests{{ids, *loop, answers}};
  Upstream one{*this, server_named("one")}, two{*this, server_named("two")};
  FakeLane first{*this, one, 0, 0}, second{*this, two, 0, 0};
  View view;
  Session &session = open_session(sessions, client);
  Target found;

  TaskWorld() {
    view.lanes = {&first, &second};
    session.view = &view;
    second.list(ItemKind::tool, R"({"tools":[{"name":"a"},{"name":"build"}]})");
  }
  ~TaskWorld() override {
    while (!two.lanes().empty()) two.remove(two.lanes().back().get());
  }
  std::string sealed(const TaskId &task, const Session &of, std::uint64_t for_ns = 1'000'000'000) {
    const auto token = ids.seal(task, of, loop->now_ns() + for_ns);
    REQUIRE(token.has_value());
    return *token;
  }
  std::string sealed(const TaskId &task) { return sealed(task, session); }
  // Returns "found", or "CODE MESSAGE" of the error that was sent.
  std::string find(const std::string &params, const std::string &method = "tasks/get") {
    client.sent.clear();
    found = {};
    const Scanned message(R"({"jsonrpc":"2.0","id":1,"method":")" + method + R"(","params":)" +
                          params + "}");
    Incoming incoming{{session.handle, 7, 0}, message.get(), 1};
    if (requests.find(session, incoming, &found)) {
      CHECK(client.sent.empty());
      CHECK(message.get()[found.range] == mcp::member(params, "taskId"));
      return "found";
    }
    REQUIRE(client.sent.size() == 1);
    const std::string_view error = mcp::member(client.sent[0].text, "error");
    return std::string(mcp::member(error, "code")) + " " +
           std::string(mcp::member(error, "message"));
  }
  std::string find_id(const std::string &token) { return find(R"({"taskId":)" + token + "}"); }
};

std::string unknown_task() {
  return "-32602 \"" + std::string(task_not_found) + "\"";
}

}  // namespace

TEST_CASE("a task id resolves to its server, its original id and the definition of its tool") {
  TaskWorld w;
  CHECK(w.find_id(w.sealed({"two", "build", R"("task\u002d1")"})) == "found");
  CHECK(w.found.lane == &w.second);
  CHECK(w.found.resolved.source == 1);
  CHECK(w.found.resolved.original_token == R"("task\u002d1")");
  CHECK(w.found.tool == "build");
  CHECK(w.found.connection == 0);
  const ItemList::Item &build = w.second.items(ItemKind::tool).items.at(1);
  CHECK(w.found.resolved.definition_hash == build.hash);
  CHECK(w.found.resolved.item == 1);
  // The tool is no longer listed. The server still has the task.
  CHECK(w.find_id(w.sealed({"two", "gone", R"("2")"})) == "found");
  CHECK(w.found.resolved.definition_hash == DefinitionHash{});
  CHECK(w.find_id(w.sealed({"one", "build", R"("3")"})) == "found");
  CHECK(w.found.lane == &w.first);
  CHECK(w.found.resolved.definition_hash == DefinitionHash{});
}

TEST_CASE("all ids that are not valid have the same error") {
  TaskWorld w;
  Session &other = open_session(w.sessions, w.client);
  other.principal = "another";
  const std::string valid = w.sealed({"two", "build", R"("1")"});
  std::string changed = valid;
  changed[changed.size() / 2] = changed[changed.size() / 2] == 'A' ? 'B' : 'A';
  const std::vector<std::pair<std::string, std::string>> invalid = {
      {"of another principal", w.sealed({"two", "build", R"("1")"}, other)},
      {"expired", w.sealed({"two", "build", R"("1")"}, w.session, 0)},
      {"changed", changed},
      {"the server's own", R"("1")"},
      {"empty", R"("")"},
      {"on a connection that has ended", w.sealed({"two", "build", R"("1")", 77})},
  };
  for (const auto &[what, token] : invalid) {
    INFO(what);
    CHECK(w.find_id(token) == unknown_task());
  }
  CHECK(w.find_id(valid) == "found");
}

TEST_CASE("a request without a task id, or about a server that was removed, is rejected") {
  TaskWorld w;
  for (const std::string method : {"tasks/get", "tasks/result", "tasks/update", "tasks/cancel"}) {
    INFO(method);
    CHECK(w.find("{}", method) == "-32602 \"" + method + " requires params.taskId (a string)\"");
    CHECK(w.find(R"({"taskId":7})", method) ==
          "-32602 \"" + method + " requires params.taskId (a string)\"");
  }
  const std::string token = w.sealed({"two", "build", R"("1")"});
  w.view.lanes = {&w.first};
  CHECK(w.find_id(token) == "-32602 \"Task not found: its server was removed from the profile\"");
}

TEST_CASE("a task of one connection is found on that connection, also outside of the view") {
  TaskWorld w;
  w.two.connector = &any_connector;
  Lane *other = w.two.lane_for(cap::sampling, 0);
  REQUIRE(other != nullptr);
  other->start();
  REQUIRE(other->handle() != 0);
  const std::string token = w.sealed({"two", "build", R"("1")", other->handle()});
  CHECK(w.find_id(token) == "found");
  CHECK(w.found.lane == other);
  CHECK(w.found.connection == other->handle());
  CHECK(w.found.resolved.source == 1);
  // A connection with this number belongs to another server.
  CHECK(w.find_id(w.sealed({"one", "build", R"("1")", other->handle()})) == unknown_task());
  w.two.remove(other);
  CHECK(w.find_id(token) == unknown_task());
}
