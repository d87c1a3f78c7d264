// Tests resolving the names in client calls to a lane and the server's original name, and the
// errors for names that cannot be resolved.
#include "route/targets.hpp"

#include <catch2/catch.hpp>

#include "route/list_world.hpp"

using namespace bulkhead;

namespace {

struct World : ListWorld {
  Targets targets{{upstreams, views, names, gate, answers}};
  Session *session = nullptr;
  Target found;

  World() {
    policy.needs = 0;
    gate.use(&policy_table, &policy);
  }
  bool find(const std::string &method, const std::string &params) {
    client.sent.clear();
    Request request(*session, R"({"jsonrpc":"2.0","id":1,"method":")" + method + R"(","params":)" +
                                  params + "}");
    found = {};
    return targets.find(*session, request.incoming, &found);
  }
  bool find_tool(const std::string &name) {
    return find("tools/call", R"({"name":")" + name + R"("})");
  }
  // Returns the error that was sent to the client as "CODE MESSAGE", or an empty string.
  std::string error() const {
    if (client.sent.empty()) return {};
    const std::string_view error = mcp::member(client.sent[0].text, "error");
    return std::string(mcp::member(error, "code")) + " " +
           std::string(mcp::member(error, "message"));
  }
};

}  // namespace

TEST_CASE("a listed name resolves to its lane and original name") {
  World w;
  w.add("a", R"([{"name":"x"}])");
  w.add("b", R"([{"name":"x"}])");
  w.session = &w.joined();
  REQUIRE(w.find_tool("b__x"));
  CHECK(w.found.lane == w.session->view->lanes[1]);
  CHECK(w.found.resolved.original_token == "\"x\"");
  CHECK(w.error().empty());
  REQUIRE(w.find_tool("a_\\u005fx"));  // the same name, with an escape sequence
  CHECK(w.found.lane == w.session->view->lanes[0]);
}

TEST_CASE("the error for a name that cannot be called contains the name") {
  World w;
  w.add("a", R"([{"name":"x"}])");
  ServerDef off = server_named("off");
  off.disabled = true;
  off.disabled_reason = "no token";
  w.upstreams.add(w.made(off, "[]"));
  w.session = &w.joined();
  struct Case {
    const char *method, *params, *error;
  };
  for (const Case &c : {
           Case{"tools/call", R"({"name":"a__z"})", "-32601 \"Tool not found: a__z"},
           Case{"tools/call", R"({"name":"x"})", "-32602 \"Tool name must be prefixed"},
           Case{"tools/call", R"({})", "-32602 \"tools/call requires params.name"},
           Case{"tools/call", R"({"name":7})", "-32602 \"tools/call requires params.name"},
           Case{"tools/call", R"({"name":"off__x"})",
                "-32603 \"server \\\"off\\\" is disabled: no token"},
           Case{"prompts/get", R"({"name":"a__p"})", "-32602 \"Prompt not found: a__p"},
           Case{"resources/read", R"({"uri":"bulkhead://none/f"})",
                "-32002 \"Resource not found: bulkhead://none/f"},
           Case{"resources/read", R"({})", "-32602 \"params.uri (a string) is missing"},
           Case{"completion/complete", R"({"ref":{"type":"ref/other","name":"a__p"}})",
                "-32602 \"completion/complete requires params.ref"},
       }) {
    INFO(c.params);
    CHECK_FALSE(w.find(c.method, c.params));
    CHECK(w.error().substr(0, std::string(c.error).size()) == c.error);
  }
}

TEST_CASE("a long name is truncated in the error") {
  World w;
  w.add("a", "[]");
  w.session = &w.joined();
  CHECK_FALSE(w.find_tool("a__" + std::string(5'000, 'y')));
  CHECK(w.error().size() < 400);
}

TEST_CASE("names and URIs of more than 64 KiB are rejected with an error that names the limit") {
  World w;
  w.add("a", "[]");
  w.session = &w.joined();
  struct Case {
    const char *method, *begin, *end, *what;
  };
  for (const Case &c : {
           Case{"tools/call", R"({"name":")", R"("})", "the name"},
           Case{"prompts/get", R"({"name":")", R"("})", "the name"},
           Case{"resources/read", R"({"uri":")", R"("})", "the URI"},
           Case{"resources/subscribe", R"({"uri":")", R"("})", "the URI"},
           Case{"completion/complete", R"({"ref":{"type":"ref/prompt","name":")", R"("}})",
                "the name"},
           Case{"completion/complete", R"({"ref":{"type":"ref/resource","uri":")", R"("}})",
                "the URI"},
       }) {
    const auto error_of = [&](std::size_t bytes) {  // of the JSON string
      CHECK_FALSE(w.find(c.method, c.begin + std::string(bytes - 2, 'y') + c.end));
      return w.error();
    };
    INFO(c.begin);
    const std::string refused = std::string("-32602 \"") + c.what + " has more than 65536 bytes\"";
    CHECK(error_of(65'536) != refused);
    CHECK(error_of(65'537) == refused);
    CHECK(error_of(1'000'000) == refused);
  }
}

TEST_CASE("the error names an unavailable server, and its reason unless a policy reads results") {
  World w;
  w.add("a", "[]");
  w.plugins["a"].listing = BH_E_UNAVAILABLE;
  w.session = &w.joined();
  CHECK_FALSE(w.find_tool("a__x"));
  CHECK(w.error().find("is not available: cannot list its tools: the folder has gone") !=
        std::string::npos);
  w.policy.needs = BH_POLICY_DECIDES | BH_POLICY_READS_RESULTS;
  w.gate.use(&policy_table, &w.policy);
  CHECK_FALSE(w.find_tool("a__x"));
  CHECK(w.error().find("the folder has gone") == std::string::npos);
  CHECK(w.error().find("status") != std::string::npos);
}

TEST_CASE("a call to a name that a starting server may offer is parked until its list arrives") {
  World w;
  w.add("a", "");
  w.session = &w.joined();
  CHECK_FALSE(w.find_tool("a__x"));
  CHECK(w.error().empty());
  CHECK(w.session->view->waiters.size() == 1);
  w.lists("a", R"([{"name":"x"}])");
  CHECK(w.handled.size() == 1);
  CHECK(w.find_tool("a__x"));
}

TEST_CASE(
    "without prefixes, a name that two servers offer is rejected, and a unique name resolves") {
  World w;
  w.profile.naming.prefix = false;
  w.names = Names(w.profile.naming);
  w.add("a", R"([{"name":"x"},{"name":"only"}])");
  w.add("b", R"([{"name":"x"}])");
  w.session = &w.joined();
  CHECK(w.find_tool("only"));
  CHECK_FALSE(w.find_tool("x"));
  CHECK(w.error().find("have a tool with this name") != std::string::npos);
}
