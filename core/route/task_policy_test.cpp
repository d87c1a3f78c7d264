// Tests policies and tasks: tasks/update as a request.
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
std::vector<Asked> asked;          // for which decisions
std::uint64_t pending_number = 0;  // of the result that is pending

// Blocks requests that contain "forbidden" and results that contain "secret". The decision about a
// result that contains "slow" is pending.
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
      return BH_OK;
    },
    [](void *, const bh_policy_request *request, bh_str result, bh_verdict *out,
       bh_error *) -> bh_status {
      const std::string_view text = bh::view(result);
      const bool allowed = text.find("secret") == std::string_view::npos;
      out->verdict = allowed ? BH_VERDICT_ALLOW : BH_VERDICT_BLOCK;
      if (text.find("slow") == std::string_view::npos) return BH_OK;
      pending_number = request->exchange;
      return BH_PENDING;
    },
    [](void *, const bh_policy_request *) -> bh_status { return BH_OK; },
    nullptr,
};

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
    CHECK(mcp::member(asked[0].definition, "name") == R"("job")");
    CHECK(w.sent(servers[i], {"method"}) == R"("tasks/update")");
    CHECK(w.sent(servers[i], {"params", "taskId"}) == R"("1")");
    w.result(servers[i], R"({"resultType":"complete"})");
    CHECK(w.told({"result", "resultType"}) == R"("complete")");

    const std::size_t before = w.servers[servers[i]].got.size();
    for (const std::string_view value : {R"({"name":"forbidden"})", R"({"a":1,"a":2})"}) {
      update(i, std::string(value));
      CHECK(w.told({"error", "code"}) == "-32600");
      CHECK(w.told({"error", "message"}).find("blocked by policy") != std::string::npos);
      CHECK(w.servers[servers[i]].got.size() == before);
    }
    // The other requests have no data to decide about.
    asked.clear();
    for (const std::string_view method : {"tasks/get", "tasks/cancel"}) {
      w.ask_alone(method, R"("taskId":)" + ids[i]);
      w.result(servers[i], R"({"resultType":"complete","taskId":"1","status":"working"})");
      CHECK(w.told({"result", "resultType"}) == R"("complete")");
    }
    CHECK(asked.empty());
  }
}
