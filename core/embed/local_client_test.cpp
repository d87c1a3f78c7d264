// Tests local clients, which run inside the embedding program.
#include <catch2/catch.hpp>

#include "embed/fake_world.hpp"

using namespace bulkhead;

TEST_CASE("a local client may be destroyed inside its own callback while messages are pending") {
  World w;
  w.start();
  Client c(*w.host);
  c.call("1", "a__x");
  const std::string first = FakeUpstreams::id_of(w.up.last("a"));
  c.call("2", "a__x");
  const std::string second = FakeUpstreams::id_of(w.up.last("a"));
  c.on_message = [&] { c.end.reset(); };
  // Both responses arrive in the same iteration of the event loop.
  w.up.send("a", R"({"jsonrpc":"2.0","id":)" + first + R"(,"result":{}})");
  w.up.send("a", R"({"jsonrpc":"2.0","id":)" + second + R"(,"result":{}})");
  CHECK(c.got.size() == 1);
  w.turn();
  CHECK(w.host->status().sessions == 0);
  CHECK(w.host->status().in_flight == 0);
}
