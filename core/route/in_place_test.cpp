// Tests the router with a tools plugin in the process and a policy whose answers are delayed: lists
// that fail or change, subscriptions, results, and other protocol generations.
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "bulkhead/cpp/basics.hpp"
#include "reactor/reactor.hpp"
#include "route/result_form.hpp"
#include "route/router.hpp"

using namespace bulkhead;

namespace {

struct Tools {
  std::string list;
  bool fails = false;
  std::uint32_t features = 0;
  bh_status subscribe_status = BH_PENDING;
  std::vector<std::string> calls{};  // method and name
  std::vector<bh_call> ids{};        // of these calls
};

const bh_tools tools_table = {
    sizeof(bh_tools),
    0,
    [](void *self, std::uint32_t kind, bh_buf *out, bh_error *error) -> bh_status {
      const Tools &tools = *static_cast<Tools *>(self);
      if (kind == BH_LIST_TEMPLATES && tools.features != 0) {
        *out = bh::buf(std::string(R"([{"uriTemplate":"note:///{+id}","name":"note"}])"));
        return BH_OK;
      }
      if (kind != BH_LIST_TOOLS) return BH_E_UNSUPPORTED;
      if (tools.fails) return bh::fail(error, BH_E_UNAVAILABLE, "the folder has gone");
      *out = bh::buf(std::string(tools.list));
      return BH_OK;
    },
    [](void *self, bh_call call, const bh_call_info *info, bh_error *error) -> bh_status {
      Tools &tools = *static_cast<Tools *>(self);
      tools.calls.push_back(std::string(bh::view(info->method)) + " " +
                            std::string(bh::view(info->name)));
      tools.ids.push_back(call);
      if (tools.subscribe_status >= BH_OK) return tools.subscribe_status;
      return bh::fail(error, tools.subscribe_status, "it may not be watched");
    },
    [](void *, bh_call) {},
    [](void *self) -> std::uint32_t { return static_cast<Tools *>(self)->features; },
};

const bh_policy policy_table = {
    sizeof(bh_policy),
    0,
    [](void *) -> std::uint32_t { return BH_POLICY_FILTERS_LISTS; },
    [](void *, const bh_policy_request *, bh_verdict *, bh_error *) -> bh_status { return BH_OK; },
    [](void *, const bh_policy_request *, bh_str, bh_verdict *, bh_error *) -> bh_status {
      return BH_OK;
    },
    [](void *self, const bh_policy_request *request) -> bh_status {
      static_cast<std::vector<std::uint64_t> *>(self)->push_back(request->exchange);
      return BH_PENDING;
    },
    nullptr,
};

struct Alone : private ClientEnd {
  Profile profile;
  std::unique_ptr<Reactor> reactor = *Reactor::create();
  Tools tools{R"([{"name":"x"},{"name":"y"}])"};
  std::vector<std::uint64_t> asked, unanswered;
  std::string log, got;
  std::unique_ptr<Router> router;
  Upstream *upstream = nullptr;
  bh_session session = 0;

  void start() {
    RouterHooks hooks;
    hooks.log = [this](std::int32_t, std::string_view text) { log.append(text).append("\n"); };
    hooks.on_unanswered = [this](std::uint64_t number, bool) { unanswered.push_back(number); };
    router = std::make_unique<Router>(profile, *reactor, std::move(hooks));
    ServerDef def;
    def.name = "t";
    auto made = std::make_unique<Upstream>(router->parts().servers.lanes, def);
    made->tools = &tools_table;
    made->self = &tools;
    upstream = made.get();
    router->parts().servers.list.add(std::move(made));
    router->start(true);
    bh_peer peer{};
    peer.size = sizeof peer;
    peer.flags = BH_PEER_HANDSHAKE_OPTIONAL;
    REQUIRE(router->parts().clients.sessions.open(*this, peer, &session, nullptr) == BH_OK);
  }
  ~Alone() override {
    router->parts().clients.sessions.end_all("the end");
    router->close_lanes();
  }
  void list() { ask(R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})"); }
  void ask(std::string_view message) {
    got.clear();
    bh_delivery delivery{};
    delivery.size = sizeof delivery;
    router->parts().clients.sessions.deliver(session, 0, message, &delivery);
  }
  // `method` is "subscribe" or "unsubscribe".
  void watch(const std::string &method, const std::string &uri) {
    ask(R"({"jsonrpc":"2.0","id":2,"method":"resources/)" + method + R"(","params":{"uri":")" +
        uri + "\"}}");
  }
  void complete() { router->parts().servers.tools.complete(tools.ids.back(), BH_RESULT_OK, "{}"); }
  ClientEnd &end() { return *this; }
  bool has(std::string_view text) const { return got.find(text) != std::string::npos; }

 private:
  void send(const bh_outgoing &message) override {
    for (std::uint32_t i = 0; i < message.part_count; ++i) got += bh::view(message.parts[i]);
  }
  void session_ended(bh_session, std::string_view) override {}
};

}  // namespace

TEST_CASE("a list that cannot be read again is kept, and the failure is reported") {
  Alone w;
  w.start();
  w.tools.fails = true;
  w.router->parts().servers.tools.list_changed(*w.upstream, BH_LIST_TOOLS);
  w.list();
  CHECK(w.has("t__x"));
  CHECK(w.upstream->status().tools == 2);
  CHECK(w.upstream->status().reason.find("the folder has gone") != std::string::npos);
  CHECK(w.log.find("the folder has gone") != std::string::npos);
  w.tools.list = R"([{"name":"z"}])";
  w.tools.fails = false;
  w.router->parts().servers.tools.list_changed(*w.upstream, BH_LIST_TOOLS);
  w.list();
  CHECK(w.has("t__z"));
  CHECK_FALSE(w.has("t__x"));
  CHECK(w.upstream->status().reason.empty());
}

TEST_CASE("the policy's pending answers are abandoned when their list changes") {
  Alone w;
  w.start();
  w.router->parts().policy.gate.use(&policy_table, &w.asked);
  w.list();
  REQUIRE(w.asked.size() == 2);
  w.router->parts().policy.lists.answered(w.asked[0], true);
  SECTION("the list has changed") {
    w.tools.list = R"([{"name":"z"}])";
    w.router->parts().servers.tools.list_changed(*w.upstream, BH_LIST_TOOLS);
  }
  SECTION("the rules have") {
    w.router->parts().servers.reload.policy_changed();
  }
  SECTION("all is over") {
    w.router->parts().clients.sessions.end_all("the end");
    w.router->close_lanes();
  }
  CHECK(w.unanswered == std::vector<std::uint64_t>{w.asked[1]});
}

TEST_CASE("a plugin that does not support subscriptions receives no subscribe request") {
  Alone w;
  w.start();
  w.watch("subscribe", "bulkhead://t/note:///1");
  CHECK(w.has("has no resource subscriptions"));
  CHECK(w.tools.calls.empty());
}

TEST_CASE(
    "a plugin receives a subscription once, and its client receives updates until it "
    "unsubscribes") {
  Alone w;
  w.tools.features = BH_TOOLS_SUBSCRIBE;
  w.start();
  const std::string uri = "bulkhead://t/note:///1";
  w.watch("subscribe", uri);
  REQUIRE(w.tools.calls == std::vector<std::string>{"resources/subscribe note:///1"});
  CHECK(w.got.empty());
  w.complete();
  CHECK(w.has(R"("result":{})"));
  w.got.clear();
  w.router->parts().servers.tools.resource_updated(*w.upstream, "note:///2");
  CHECK(w.got.empty());
  w.router->parts().servers.tools.resource_updated(*w.upstream, "note:///1");
  CHECK(w.has(R"("method":"notifications/resources/updated","params":{"uri":")" + uri + "\"}"));
  w.watch("subscribe", uri);  // the plugin has already accepted this subscription
  CHECK(w.has(R"("result":{})"));
  CHECK(w.tools.calls.size() == 1);
  w.watch("unsubscribe", uri);
  CHECK(w.tools.calls.back() == "resources/unsubscribe note:///1");
  w.complete();
  w.got.clear();
  w.router->parts().servers.tools.resource_updated(*w.upstream, "note:///1");
  CHECK(w.got.empty());
}

TEST_CASE("a subscription that the plugin refuses has no effect") {
  Alone w;
  w.tools.features = BH_TOOLS_SUBSCRIBE;
  w.tools.subscribe_status = BH_E_LIMIT;
  w.start();
  w.watch("subscribe", "bulkhead://t/note:///1");
  CHECK(w.has("it may not be watched"));
  w.got.clear();
  w.router->parts().servers.tools.resource_updated(*w.upstream, "note:///1");
  CHECK(w.got.empty());
}

TEST_CASE(
    "a restarted plugin receives its subscriptions again, and they remain even if it refuses "
    "them") {
  Alone w;
  w.tools.features = BH_TOOLS_SUBSCRIBE;
  w.start();
  w.watch("subscribe", "bulkhead://t/note:///1");
  w.complete();
  w.router->parts().servers.tools.began(*w.upstream);
  REQUIRE(w.tools.calls.size() == 2);
  CHECK(w.tools.calls[1] == "resources/subscribe note:///1");
  w.got.clear();
  SECTION("it agrees") {
    w.complete();
  }
  SECTION("it refuses") {
    w.router->parts().servers.tools.refused(w.tools.ids.back(), {BH_E_LIMIT, "too many"});
  }
  SECTION("it does not answer") {}
  CHECK(w.got.empty());
  w.router->parts().servers.tools.resource_updated(*w.upstream, "note:///1");
  CHECK(w.has("resources/updated"));
}

TEST_CASE("a subscription ends when its client disconnects") {
  Alone w;
  w.tools.features = BH_TOOLS_SUBSCRIBE;
  w.start();
  w.watch("subscribe", "bulkhead://t/note:///1");
  w.complete();
  w.router->parts().clients.sessions.close(w.session, BH_SESSION_GONE);
  CHECK(w.tools.calls.back() == "resources/unsubscribe note:///1");
}

TEST_CASE("a result must be a single JSON object and cannot add members to the enclosing message") {
  Alone w;
  w.start();
  const auto call = [&](std::string_view json) {
    w.ask(R"({"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"t__x"}})");
    w.router->parts().servers.tools.complete(w.tools.ids.back(), BH_RESULT_OK, json);
  };
  for (const std::string_view good : {R"({"content":[]})", "{\"content\":[]} \r\n"}) {
    INFO(good);
    call(good);
    CHECK(w.has(R"("id":3)"));
    CHECK(w.has(R"("content":[])"));
  }
  for (const std::string_view bad :
       {"", "[]", "7", "{", R"({"a":1},"id":4)", R"({"a":1},"result":{"b":2})",
        R"({"a":1},"extra":{})", R"({"a":1}})", R"( {"a":1})"}) {
    INFO(bad);
    call(bad);
    CHECK(w.has(R"("id":3)"));
    CHECK(w.has("returned an invalid answer"));
  }
}

namespace {

// A minimal version of the next revision, to show that it requires only a new edge: each request is
// independent and has its revision and the client's capabilities in _meta.
class NextEdge final : public ClientEdge {
  // A server of that revision may already have set the result type.
  class Form final : public ResultForm {
   public:
    explicit Form(std::string_view members) : members_(members) {}
    std::string_view members(std::string_view result) const override {
      return mcp::member(result, "resultType").empty() ? members_ : std::string_view();
    }

   private:
    const std::string_view members_;
  };

 public:
  explicit NextEdge(const ClientParts &parts) : parts_(parts) { parts.messages.add(*this); }

  bool speaks(const Session &, const mcp::Scan &message) const override {
    return message.modern || message.method == mcp::Method::server_discover;
  }
  bool begins_session(const mcp::Scan &) const override { return false; }
  bool takes_batches(const Session &) const override { return false; }
  void request(Session &session, Incoming &request) override {
    const mcp::Method method = request.message.scan->method;
    request.reply.form = listed_kind(method).has_value() ? &list_ : &result_;
    if (method == mcp::Method::server_discover) {
      return parts_.answers.result(request, R"({"supportedVersions":["2026-07-28"]})");
    }
    if (session.view == nullptr) parts_.views.join(session);
    parts_.requests.answer(session, request);
  }
  void notification(Session &, const Message &) override {}

 private:
  const ClientParts &parts_;
  const Form result_{R"("resultType":"complete")"};
  const Form list_{R"("resultType":"complete","ttlMs":0,"cacheScope":"private")"};
};

}  // namespace

TEST_CASE("a different protocol generation requires only a different edge") {
  Alone w;
  w.start();
  NextEdge next(w.router->parts().clients);
  const std::string meta = R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
                           R"("io.modelcontextprotocol/clientCapabilities":{}})";
  std::uint64_t stream = 0;
  const auto ask = [&](const std::string &message) {
    w.got.clear();
    bh_peer peer{};
    peer.size = sizeof peer;
    bh_incoming in{};
    in.size = sizeof in;
    in.peer = &peer;
    in.stream = ++stream;
    in.message = bh::str(message);
    bh_delivery out{};
    out.size = sizeof out;
    return w.router->parts().clients.sessions.deliver_message(w.end(), in, &out);
  };
  const std::size_t sessions = w.router->parts().clients.sessions.count();
  CHECK(ask(R"({"jsonrpc":"2.0","id":1,"method":"server/discover","params":{)" + meta + "}}") ==
        BH_OK);
  CHECK(w.has(R"({"jsonrpc":"2.0","id":1,"result":{"resultType":"complete")"));
  CHECK(ask(R"({"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"t__x",)" + meta +
            "}}") == BH_OK);
  REQUIRE(w.tools.calls.size() == 1);
  CHECK(w.tools.calls[0] == "tools/call x");
  CHECK(w.got.empty());
  w.router->parts().servers.tools.complete(w.tools.ids[0], BH_RESULT_OK, R"({"content":[]})");
  CHECK(w.got == R"({"jsonrpc":"2.0","id":"a","result":{"resultType":"complete","content":[]}})");
  CHECK(w.router->parts().clients.sessions.count() == sessions);
  // Clients with a session are not affected.
  w.list();
  CHECK(w.has("t__y"));
  CHECK_FALSE(w.has("resultType"));
}

TEST_CASE("a result has the form that its client's generation requires; an error is unchanged") {
  Alone w;
  w.start();
  const std::string meta = R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
                           R"("io.modelcontextprotocol/clientCapabilities":{}})";
  const std::string call =
      R"({"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"t__x")";
  const auto answer_with = [&](const std::string &message, std::uint32_t kind,
                               std::string_view json) {
    w.ask(message);
    REQUIRE(!w.tools.ids.empty());
    w.router->parts().servers.tools.complete(w.tools.ids.back(), kind, json);
    CHECK(mcp::valid_json(w.got));
    return w.got;
  };
  const std::string now = call + "}}", next = call + "," + meta + "}}";
  const NextEdge edge(w.router->parts().clients);
  struct Case {
    std::string_view from_server, next;
  };
  for (const auto &[from_server, formed] : std::vector<Case>{
           {R"({"content":[]})", R"({"resultType":"complete","content":[]})"},
           {"{ }", R"({"resultType":"complete" })"},
           {R"({ "isError":true})", R"({"resultType":"complete", "isError":true})"},
           {R"({"resultType":"input_required"})", R"({"resultType":"input_required"})"}}) {
    INFO(from_server);
    const std::string head = R"({"jsonrpc":"2.0","id":3,"result":)";
    CHECK(answer_with(next, BH_RESULT_OK, from_server) == head + std::string(formed) + "}");
    // In current revisions, results are sent byte for byte.
    CHECK(answer_with(now, BH_RESULT_OK, from_server) == head + std::string(from_server) + "}");
  }
  const std::string error = answer_with(next, BH_RESULT_ERROR, R"({"code":-5,"message":"no"})");
  CHECK(error == R"({"jsonrpc":"2.0","id":3,"error":{"code":-5,"message":"no"}})");
  w.ask(R"({"jsonrpc":"2.0","id":4,"method":"tools/list","params":{)" + meta + "}}");
  const std::string_view result = mcp::member(w.got, "result");
  CHECK(mcp::valid_json(w.got));
  CHECK(mcp::member(result, "ttlMs") == "0");
  CHECK(mcp::member(result, "resultType") == R"("complete")");
  CHECK(mcp::member(result, "tools").find("t__y") != std::string_view::npos);
}
