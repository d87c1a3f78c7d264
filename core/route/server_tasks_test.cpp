// Tests the part of a lane that concerns tasks, without the lane.
#include "route/server_tasks.hpp"

#include "route/lane_part_fakes.hpp"
#include "route/session.hpp"
#include "route/stateless_form.hpp"
#include "route/stateless_server_edge.hpp"

using namespace bulkhead;

namespace {

using Texts = std::vector<std::string>;

enum class Server { none, sessions, old_revision, stateless };

struct Parts : LaneParts {
  ServerTasks tasks{lane, *this, conversation, wire};

  explicit Parts(Server server, bool runs_tasks = true, bool has_cancel = true) {
    lane.set_state(LaneState::ready);
    ServerCaps caps;
    caps.tool_tasks = runs_tasks;
    caps.task_cancel = has_cancel;
    lane.set_caps(caps);
    if (server == Server::sessions) conversation.begin(session_server_edge(), "2025-11-25");
    if (server == Server::old_revision) conversation.begin(session_server_edge(), "2025-06-18");
    if (server == Server::stateless) {
      conversation.begin(stateless_server_edge(), std::string(stateless_revision));
    }
  }
  // Returns the ids of the tasks that the lane has cancelled at the server.
  Texts cancelled() const {
    Texts out;
    for (const std::string &params : wire.params_of("tasks/cancel")) {
      out.emplace_back(mcp::member(params, "taskId"));
    }
    return out;
  }
};

// The client of a call.
struct Client {
  bool stateless = false;
  bool declares = false;  // declares the tasks extension
  bool requests = false;  // requests a task in its call
  std::uint8_t revision = newest_revision;
};

TaskRole role_of(Parts &p, const Client &client, bool tool_supports, const std::string &method) {
  p.lane.list(ItemKind::tool, R"({"tools":[{"name":"x","execution":{"taskSupport":")" +
                                  std::string(tool_supports ? "optional" : "forbidden") +
                                  R"("}}]})");
  const std::string task = client.requests ? R"(,"task":{})" : "";
  const Scanned m(R"({"jsonrpc":"2.0","id":1,"method":")" + method +
                  R"(","params":{"name":"x","taskId":"t","arguments":{})" + task + "}}");
  Session session;
  session.caps = client.declares ? cap::tasks : 0;
  session.revision = client.revision;
  StatelessForm form{false};
  Call call;
  call.session = &session;
  call.method = m.scan.method;
  if (client.stateless) call.request.reply.form = &form;
  CallInHand hand{m.get(), {&p.lane, {}, m.scan.name}, {}, {}};
  hand.target.resolved.item = 0;
  hand.target.resolved.definition_hash = p.lane.items(ItemKind::tool).items[0].hash;
  return p.tasks.role(call, hand);
}

}  // namespace

TEST_CASE("the role of a call depends on the client, the server and the tool") {
  constexpr Client plain{}, requests{.requests = true}, stateless{.stateless = true},
      declares{.stateless = true, .declares = true},
      old{.requests = true, .revision = newest_revision - 1};
  struct Case {
    std::string about;
    Client client;
    Server server;
    bool runs_tasks, tool_supports;
    TaskRole role;
  };
  const std::vector<Case> cases = {
      {"no task was requested", plain, Server::sessions, true, true, TaskRole::none},
      {"a task was requested", requests, Server::sessions, true, true, TaskRole::creates},
      {"the tool decides itself", requests, Server::sessions, true, false, TaskRole::creates},
      {"the server has no tasks", requests, Server::sessions, false, true, TaskRole::none},
      {"the server's revision is older", requests, Server::old_revision, true, true,
       TaskRole::none},
      {"the client's revision is older", old, Server::sessions, true, true, TaskRole::none},
      {"declared, the tool supports it", declares, Server::sessions, true, true, TaskRole::creates},
      {"declared, the tool does not", declares, Server::sessions, true, false, TaskRole::none},
      {"not declared", stateless, Server::sessions, true, true, TaskRole::none},
      {"not declared, server of 2026-07-28", stateless, Server::stateless, false, false,
       TaskRole::none},
      {"declared, server of 2026-07-28", declares, Server::stateless, false, false,
       TaskRole::may_create},
      {"requested, server of 2026-07-28", requests, Server::stateless, false, false,
       TaskRole::may_create},
  };
  for (const Case &c : cases) {
    INFO(c.about);
    Parts p(c.server, c.runs_tasks);
    CHECK(role_of(p, c.client, c.tool_supports, "tools/call") == c.role);
    CHECK(role_of(p, c.client, c.tool_supports, "tasks/get") == TaskRole::about);
    CHECK(role_of(p, c.client, c.tool_supports, "prompts/get") == TaskRole::none);
  }
}

TEST_CASE("a task is cancelled only at a server that has tasks/cancel") {
  struct Case {
    std::string about;
    Server server;
    LaneState state;
    bool has_cancel;
    Texts cancelled;
  };
  const std::vector<Case> cases = {
      {"sessions", Server::sessions, LaneState::ready, true, {R"("t")"}},
      {"sessions, not declared", Server::sessions, LaneState::ready, false, {}},
      {"sessions, no connection", Server::sessions, LaneState::waiting, true, {}},
      {"2026-07-28", Server::stateless, LaneState::ready, false, {R"("t")"}},
  };
  for (const Case &c : cases) {
    INFO(c.about);
    Parts p(c.server, true, c.has_cancel);
    p.lane.set_state(c.state);
    p.tasks.cancel(R"("t")");
    CHECK(p.cancelled() == c.cancelled);
    CHECK(p.tasks.open_cancels() == c.cancelled.size());
  }
}

TEST_CASE("a stray result that describes a task cancels it") {
  constexpr auto session_task =
      R"({"task":{"taskId":"t","status":"working","createdAt":"2026-01-01T00:00:00Z",)"
      R"("lastUpdatedAt":"2026-01-01T00:00:00Z","ttl":null}})";
  constexpr auto stateless_task = R"({"resultType":"task","taskId":"t","status":"working"})";
  struct Case {
    std::string about;
    Server server;
    bool runs_tasks;
    std::string result;
    Texts cancelled;
  };
  const std::vector<Case> cases = {
      {"no connection", Server::none, true, stateless_task, {}},
      {"2026-07-28", Server::stateless, false, stateless_task, {R"("t")"}},
      {"2026-07-28, another form", Server::stateless, false, session_task, {}},
      {"2026-07-28, no task", Server::stateless, false, R"({"content":[]})", {}},
      {"sessions", Server::sessions, true, session_task, {R"("t")"}},
      {"sessions, another form", Server::sessions, true, stateless_task, {}},
      {"sessions, no tasks", Server::sessions, false, session_task, {}},
  };
  for (const Case &c : cases) {
    INFO(c.about);
    Parts p(c.server, c.runs_tasks);
    p.tasks.cancel_stray(c.result);
    CHECK(p.cancelled() == c.cancelled);
  }
}

TEST_CASE("at most max_cancels tasks are cancelled at the same time") {
  Parts p(Server::sessions);
  for (std::size_t i = 0; i < ServerTasks::max_cancels + 1; ++i) p.tasks.cancel(R"("t")");
  CHECK(p.cancelled().size() == ServerTasks::max_cancels);
  CHECK(p.tasks.open_cancels() == ServerTasks::max_cancels);
  CHECK(p.lane.in_flight == 0);
  while (p.lane.exchanges.head != nullptr) p.drop(*p.lane.exchanges.head);
  CHECK(p.tasks.open_cancels() == 0);
  p.tasks.cancel(R"("t")");
  CHECK(p.cancelled().size() == ServerTasks::max_cancels + 1);
}

TEST_CASE("the facts of a conversation depend on its connection") {
  LaneParts p;
  Conversation &conversation = p.conversation;
  CHECK(conversation.edge() == nullptr);
  CHECK(conversation.takes(mcp::Method::resources_subscribe));
  CHECK_FALSE(conversation.stateless());
  CHECK_FALSE(conversation.has_sessions());
  conversation.begin(stateless_server_edge(), std::string(stateless_revision));
  CHECK(conversation.stateless());
  CHECK_FALSE(conversation.has_sessions());
  CHECK_FALSE(conversation.takes(mcp::Method::resources_subscribe));
  CHECK(conversation.revision() == stateless_revision);
  conversation.begin(session_server_edge(), "2025-11-25");
  CHECK_FALSE(conversation.stateless());
  CHECK(conversation.has_sessions());
  CHECK(conversation.takes(mcp::Method::resources_subscribe));
  conversation.end();
  CHECK(conversation.edge() == nullptr);
  CHECK_FALSE(conversation.has_sessions());
}
