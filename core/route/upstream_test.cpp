// Tests the lanes of a server: which clients share a lane, and what is declared to the server.
#include "route/upstream.hpp"

#include <catch2/catch.hpp>

#include "route/fakes.hpp"
#include "route/lane_world.hpp"

using namespace bulkhead;

namespace {

constexpr ClientCaps kRoots = cap::roots | cap::roots_changed;

// A server whose lanes are created but never started.
struct RootsWorld : FakeLaneHost {
  static inline const bh_connector connector{};
  Upstream upstream;

  explicit RootsWorld(std::optional<RootsMode> mode, SessionScope session = SessionScope::shared)
      : upstream(*this, definition(mode, session)) {
    upstream.connector = &connector;
  }
  static ServerDef definition(std::optional<RootsMode> mode, SessionScope session) {
    ServerDef def = server_named("s");
    def.roots = mode;
    def.session = session;
    return def;
  }
};

}  // namespace

TEST_CASE("roots off: clients with and without roots share one lane, which does not declare them") {
  RootsWorld w(GENERATE(true, false) ? std::optional(RootsMode::off) : std::nullopt);
  const Lane *plain = w.upstream.lane_for(0, 1);
  CHECK(w.upstream.lane_for(kRoots, 2) == plain);
  CHECK(w.upstream.lane_for(cap::roots, 3) == plain);
  CHECK(plain->session() == 0);
  CHECK(plain->caps() == 0);
  CHECK(w.upstream.lane_for(kRoots | cap::sampling, 4)->caps() == cap::sampling);
  CHECK_FALSE(w.upstream.has_own_lane(kRoots, 1));
}

TEST_CASE("static roots: declared to the server for all clients, which share one lane") {
  RootsWorld w(RootsMode::static_list);
  const Lane *plain = w.upstream.lane_for(0, 1);
  CHECK(w.upstream.lane_for(kRoots, 2) == plain);
  CHECK(w.upstream.lane_for(0, 0) == plain);
  CHECK(plain->caps() == kRoots);
  CHECK(plain->session() == 0);
  CHECK(w.upstream.lanes().size() == 1);
}

TEST_CASE("roots per client: only clients that declare roots have lanes of their own") {
  RootsWorld w(RootsMode::per_client);
  const Lane *plain = w.upstream.lane_for(0, 1);
  const Lane *one = w.upstream.lane_for(kRoots, 2), *two = w.upstream.lane_for(cap::roots, 3);
  CHECK(w.upstream.lane_for(0, 4) == plain);
  CHECK(plain->caps() == 0);
  CHECK(one != two);
  CHECK(one->session() == 2);
  CHECK(one->caps() == kRoots);
  CHECK(two->caps() == cap::roots);
  CHECK(w.upstream.lane_for(kRoots, 0) == plain);  // a view that belongs to no client
}

TEST_CASE("session per client: roots are the client's unless the key says otherwise") {
  const auto caps_of = [](std::optional<RootsMode> mode) {
    RootsWorld w(mode, SessionScope::per_client);
    const Lane *lane = w.upstream.lane_for(kRoots | cap::sampling, 2);
    CHECK(lane->session() == 2);
    return lane->caps();
  };
  CHECK(caps_of({}) == (kRoots | cap::sampling));
  CHECK(caps_of(RootsMode::off) == cap::sampling);
  CHECK(caps_of(RootsMode::static_list) == (kRoots | cap::sampling));
}

TEST_CASE("a server that asks clients gets a lane for each principal without sessions") {
  RootsWorld w(RootsMode::off);
  constexpr std::uint64_t alice = 1ull << 63 | 5, bob = 1ull << 63 | 6;
  const Lane *shared = w.upstream.lane_for(cap::elicitation, alice);
  CHECK(shared->session() == 0);
  CHECK(w.upstream.lane_for(cap::elicitation, bob) == shared);
  w.upstream.asks = true;
  const Lane *own = w.upstream.lane_for(cap::elicitation, alice);
  CHECK(own->session() == alice);
  CHECK(own->caps() == cap::elicitation);
  CHECK(w.upstream.lane_for(cap::elicitation, alice) == own);
  CHECK(w.upstream.lane_for(cap::elicitation, bob)->session() == bob);
  // Clients that cannot be asked, and clients with sessions, are not affected.
  CHECK(w.upstream.lane_for(0, alice)->session() == 0);
  CHECK(w.upstream.lane_for(cap::elicitation, 7) == shared);
}

namespace {

// A pool of three connections, the first of which lists "x" and "y". The others list nothing yet.
struct PoolWorld : LaneWorld {
  std::unique_ptr<Upstream> server;

  explicit PoolWorld(std::vector<std::string> safe) {
    ServerDef other = def;
    other.pool_size = 3;
    other.pool_safe_tools = std::move(safe);
    server = replaced_by(other);
    lane->start();
    lists(both("reads"));
    REQUIRE(server->lanes().size() == 3);
  }
  ~PoolWorld() override { remove(*server); }
  static std::string both(const std::string &description) {
    return R"({"tools":[{"name":"y"},{"name":"x","description":")" + description + R"("}]})";
  }
  // Completes the handshake of the next connection, which then sends this list.
  void lists(const std::string &tools) {
    initialize();
    answer("tools/list", tools);
  }
  // Returns the indexes of the lanes to which the next calls of the tool are sent.
  std::vector<std::size_t> shares(const std::string &tool) {
    const ItemList &tools = lane->items(ItemKind::tool);
    Resolved resolved;
    if (const ItemList::Item *item = tools.find_named(tool)) {
      resolved.definition_hash = item->hash;
      resolved.item = static_cast<std::uint32_t>(item - tools.items.data());
    }
    std::vector<std::size_t> out;
    for (int i = 0; i < 6; ++i) {
      const Lane *to = server->share(*lane, tool, resolved);
      const auto at = std::find_if(server->lanes().begin(), server->lanes().end(),
                                   [to](const auto &one) { return one.get() == to; });
      out.push_back(static_cast<std::size_t>(at - server->lanes().begin()));
    }
    std::sort(out.begin(), out.end());
    return out;
  }
};

using Indexes = std::vector<std::size_t>;

}  // namespace

TEST_CASE("a pool shares the calls of tools that are marked as safe among ready connections") {
  PoolWorld w({"x"});
  CHECK(w.shares("x") == Indexes{0, 0, 0, 0, 0, 0});
  w.lists(PoolWorld::both("reads"));
  CHECK(w.shares("x") == Indexes{0, 0, 0, 1, 1, 1});
  w.lists(PoolWorld::both("reads"));
  CHECK(w.shares("x") == Indexes{0, 0, 1, 1, 2, 2});
  CHECK(w.shares("y") == Indexes{0, 0, 0, 0, 0, 0});
  CHECK(w.shares("z") == Indexes{0, 0, 0, 0, 0, 0});
}

TEST_CASE("a connection of a pool receives a call only if it lists the call's definition") {
  PoolWorld w({"x", "y"});
  w.lists(PoolWorld::both("writes"));
  w.lists(R"({"tools":[{"name":"x","description":"reads"}]})");
  CHECK(w.shares("x") == Indexes{0, 0, 0, 2, 2, 2});
  CHECK(w.shares("y") == Indexes{0, 0, 0, 1, 1, 1});
  CHECK(w.shares("z") == Indexes{0, 0, 0, 0, 0, 0});  // listed by no connection
}
