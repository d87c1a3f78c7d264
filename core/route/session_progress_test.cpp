// Tests progress of clients with sessions for requests of servers.
#include "route/session_edge.hpp"

#include <catch2/catch.hpp>

#include "route/message_world.hpp"
#include "route/router.hpp"

using namespace bulkhead;

namespace {

// The router provides the parts of the edge that notifications about progress do not use.
struct EdgeWorld : MessageWorld {
  Profile profile;
  Router router{profile, *loop, {}};
  SessionEdge edge{
      {profile, counters, answers, router.parts().clients.requests, router.parts().clients.views,
       router.parts().calls.ends, asks, router.parts().calls.desk, notifications, subscriptions,
       router.parts().clients.journal, *loop, [this](const Lane &, mcp::Method) { ++lost; }}};
};

}  // namespace

TEST_CASE("a client's progress that cannot be rewritten does not reach the server") {
  EdgeWorld w;
  w.call_of(w.first);
  const Scanned request(R"({"jsonrpc":"2.0","id":"r","method":"sampling/createMessage","params":)"
                        R"({"_meta":{"progressToken":"theirs"}}})");
  w.asks.request(w.lane, 0, request.get());
  const auto sent = w.sent_to(w.first, BH_OUT_ASK);
  REQUIRE(sent.size() == 1);
  const std::string id(mcp::member(sent[0], "id"));
  const BrokenProgress progress(id);
  w.edge.notification(w.first, progress.get());
  CHECK(w.lane.messages.empty());
  CHECK(w.lost == 1);
  // Progress of another client or with another token is ignored and not counted.
  w.edge.notification(w.second, progress.get());
  w.edge.notification(w.first, BrokenProgress("\"other\"").get());
  CHECK(w.lost == 1);
  const Scanned valid(R"({"jsonrpc":"2.0","method":"notifications/progress","params":)"
                      R"({"progress":1,"progressToken":)" +
                      id + "}}");
  w.edge.notification(w.first, valid.get());
  REQUIRE(w.lane.messages.size() == 1);
  CHECK(at(w.lane.messages[0], {"params", "progressToken"}) == "\"theirs\"");
  CHECK(w.lost == 1);
}
