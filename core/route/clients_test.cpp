// Tests the sessions of clients in the router: what remains of a connection after its end, and the
// status.
#include "route/clients.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "route/task_world.hpp"

using namespace bulkhead;

namespace {

const std::string asking = R"({"elicitation":{}})";

// A router with the given servers, and clients that use connections. Servers whose names begin with
// "each" run per client.
struct Connections : TaskWorld {
  explicit Connections(const std::vector<std::string> &names) : TaskWorld(names) {}
  void turn() { reactor->poll(0); }
  // Parks a call of this connection: its server has asked the client, and the client has received
  // the question.
  void park(bh_session connection, const std::string &server) {
    ask_on(connection, "tools/call", R"("name":")" + server + R"(__plain")", asking);
    ask_until_asked(server);
  }
  // Makes the server ask the client of its call, and waits until the client has received the result
  // that asks for input.
  void ask_until_asked(const std::string &server) {
    REQUIRE(servers.at(server).got.size() == 1);
    server_asks(server, "elicitation/create", R"({"message":"?","requestedSchema":{}})");
    for (int i = 0; i < 2'000 && got.empty(); ++i) reactor->poll(10);
    REQUIRE(told({"result", "resultType"}) == R"("input_required")");
    turn();
  }
};

}  // namespace

TEST_CASE("clients: the servers of a connection end with it, and those of others do not") {
  Connections w({"each1", "each2"});
  const std::size_t before = w.lanes("each1");
  const bh_session one = w.open(), two = w.open();
  for (const bh_session connection : {one, two}) {
    for (const char *capabilities : {"{}", R"({"sampling":{}})"}) {
      w.ask_on(connection, "tools/list", "", capabilities);
      CHECK(w.told({"result", "tools"}).find("each2__job") != std::string::npos);
      w.turn();
    }
  }
  CHECK(w.lanes("each1") == before + 4);
  CHECK(w.lanes("each2") == before + 4);
  w.close(one);
  CHECK(w.lanes("each1") == before + 2);
  CHECK(w.lanes("each2") == before + 2);
  w.ask_on(two, "tools/list", "");
  CHECK(w.lanes("each1") == before + 2);
  SECTION("also if the connection ends before its last request does") {
    w.ask_on(two, "tools/call", R"("name":"each1__plain")");
  }
  w.close(two);
  w.turn();
  CHECK(w.lanes("each1") == before);
  CHECK(w.lanes("each2") == before);
  // Over HTTP, the next request of the principal uses the same servers.
  w.ask_alone("tools/list", "");
  w.turn();
  CHECK(w.lanes("each1") == before + 1);
}

TEST_CASE("clients: a connection that is opened again and again leaves no servers behind") {
  Connections w({"each1"});
  const std::size_t before = w.lanes("each1");
  for (int i = 0; i < 20; ++i) {
    const bh_session connection = w.open();
    w.ask_on(connection, "tools/list", "");
    w.turn();
    w.close(connection);
  }
  CHECK(w.lanes("each1") == before);
}

TEST_CASE("clients: the server of a parked call remains after the end of its connection") {
  Connections w({"each1", "each2", "shared"});
  const std::size_t before = w.lanes("each1");
  const bh_session connection = w.open();
  w.park(connection, "each1");
  const std::size_t shared = w.lanes("shared");
  w.close(connection);
  w.turn();
  CHECK(w.lanes("each1") == before + 1);
  CHECK(w.lanes("each2") == before + 1);
  w.result("each1", R"({"content":[]})");
  w.turn();
  CHECK(w.lanes("each1") == before);
  CHECK(w.lanes("each2") == before);
  CHECK(w.lanes("shared") == shared);  // kept for the next client
}

TEST_CASE("clients: a parked call counts for one client in the status") {
  Connections w({"old"});
  const bh_session connection = w.open();
  SECTION("on a connection") {
    w.park(connection, "old");
  }
  SECTION("without a session") {
    w.ask_alone("tools/call", R"("name":"old__plain")", "ada", asking);
    w.ask_until_asked("old");
  }
  const auto check = [&w] {
    std::size_t listed = 0;
    for (const ClientStatus &client : w.router->parts().clients.sessions.list()) {
      if (client.protocol != "2026-07-28") continue;
      ++listed;
      CHECK(client.calls == 1);
    }
    CHECK(listed == 1);
  };
  check();
  w.result("old", R"({"content":[]})");
  w.turn();
  check();
}
