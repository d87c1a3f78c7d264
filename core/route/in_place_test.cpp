// The router alone, with a server in the process and a policy that answers later: what their lists
// do when they fail or become others.
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "bulkhead/cpp/basics.hpp"
#include "reactor/reactor.hpp"
#include "route/router.hpp"

using namespace bulkhead;

namespace {

struct Tools {
  std::string list;
  bool fails = false;
};

const bh_tools tools_table = {
    sizeof(bh_tools),
    0,
    [](void *self, std::uint32_t kind, bh_buf *out, bh_error *error) -> bh_status {
      const Tools &tools = *static_cast<Tools *>(self);
      if (kind != BH_LIST_TOOLS) return BH_E_UNSUPPORTED;
      if (tools.fails) return bh::fail(error, BH_E_UNAVAILABLE, "the folder has gone");
      *out = bh::buf(std::string(tools.list));
      return BH_OK;
    },
    [](void *, bh_call, const bh_call_info *, bh_error *) -> bh_status { return BH_PENDING; },
    [](void *, bh_call) {},
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
    auto made = router->new_upstream(def);
    made->tools = &tools_table;
    made->self = &tools;
    upstream = made.get();
    router->add_upstream(std::move(made));
    router->start(true);
    bh_peer peer{};
    peer.size = sizeof peer;
    peer.flags = BH_PEER_HANDSHAKE_OPTIONAL;
    REQUIRE(router->session_open(*this, peer, &session, nullptr) == BH_OK);
  }
  ~Alone() override {
    router->end_sessions("the end");
    router->close_lanes();
  }
  void list() {
    got.clear();
    bh_delivery delivery{};
    delivery.size = sizeof delivery;
    router->deliver(session, 0, R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})", &delivery);
  }
  bool has(std::string_view text) const { return got.find(text) != std::string::npos; }

 private:
  void send(const bh_outgoing &message) override {
    for (std::uint32_t i = 0; i < message.part_count; ++i) got += bh::view(message.parts[i]);
  }
  void session_ended(bh_session, std::string_view) override {}
};

}  // namespace

TEST_CASE("a list that cannot be read again stays, and the failure shows") {
  Alone w;
  w.start();
  w.tools.fails = true;
  w.router->tools_changed(*w.upstream, BH_LIST_TOOLS);
  w.list();
  CHECK(w.has("t__x"));
  CHECK(w.upstream->status().tools == 2);
  CHECK(w.upstream->status().reason.find("the folder has gone") != std::string::npos);
  CHECK(w.log.find("the folder has gone") != std::string::npos);
  w.tools = {R"([{"name":"z"}])", false};
  w.router->tools_changed(*w.upstream, BH_LIST_TOOLS);
  w.list();
  CHECK(w.has("t__z"));
  CHECK_FALSE(w.has("t__x"));
  CHECK(w.upstream->status().reason.empty());
}

TEST_CASE("what a policy was asked about a list that is another now, nobody waits for") {
  Alone w;
  w.start();
  w.router->gate().use(&policy_table, &w.asked);
  w.list();
  REQUIRE(w.asked.size() == 2);
  w.router->policy_filtered(w.asked[0], true);
  SECTION("the list has changed") {
    w.tools.list = R"([{"name":"z"}])";
    w.router->tools_changed(*w.upstream, BH_LIST_TOOLS);
  }
  SECTION("the rules have") {
    w.router->policy_changed();
  }
  SECTION("all is over") {
    w.router->end_sessions("the end");
    w.router->close_lanes();
  }
  CHECK(w.unanswered == std::vector<std::uint64_t>{w.asked[1]});
}
