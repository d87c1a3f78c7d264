// Tests resuming sessions after a restart, and closing several sessions.
#include <vector>

#include "testing.hpp"

using namespace transport_http::testing;

namespace {

const std::string any_port = R"({"listen":"127.0.0.1:0"})";
const std::string earlier(32, 'a');  // a session ID of an earlier process
const std::string sealed = earlier + ".sealed";

// A host that resumes every session.
bh_host_resume willing() {
  bh_host_resume table{};
  table.size = sizeof table;
  table.seal = [](void *, bh_session, bh_str, bh_buf *, bh_error *) { return bh_status{BH_STALE}; };
  table.reopen = [](void *ctx, const bh_peer *, bh_str, bh_str, bh_session *out, bh_error *) {
    Rig &rig = Rig::of(ctx);
    *out = ++rig.last_session;
    rig.open[*out] = "local";
    return bh_status{BH_OK};
  };
  return table;
}

std::string last_event(const std::string &id) {
  return "Last-Event-ID: " + id + "\r\n";
}

}  // namespace

TEST_CASE("event ids from an earlier process do not match events of the current process") {
  const bh_host_resume resume = willing();
  Rig rig(any_port, test_limits(), &resume);
  Client client(rig), broken(rig);
  // This is the session's first request in this process. In the earlier process, the first request
  // used stream 1, so the event ID 1-0 must not match this request.
  broken.send(post(rig, "later", sealed));
  REQUIRE(rig.host.run_until([&] { return rig.delivered.size() == 1; }, 20'000));
  rig.event(rig.delivered[0], "of this process");
  REQUIRE(broken.wait_for("of this process"));
  broken.close();
  rig.host.run_for(20);
  rig.answer(rig.delivered[0], "answer");
  CHECK(client.request(get(rig, sealed, last_event("1-0"))).status == 400);
  const std::string number = std::to_string(rig.delivered[0].stream);
  CHECK(client.request(get(rig, sealed, last_event(number + "-0"))).has("answer"));

  rig.send(BH_OUT_EVENT, rig.delivered[0].session, 0, "general");
  for (const std::string seen : {"0-57", "0-4294967295"}) {
    Client listening(rig);
    listening.send(get(rig, sealed, last_event(seen)));
    CHECK(listening.wait_for("general"));
  }
}

TEST_CASE("a client that resumes gets an error in place of a response that was too large to keep") {
  Rig rig;
  Client client(rig), broken(rig);
  const std::string id = initialize(rig, client);
  broken.send(post(rig, "later", id));
  REQUIRE(rig.host.run_until([&] { return rig.delivered.size() == 2; }, 20'000));
  const Rig::Delivered d = rig.delivered[1];
  rig.event(d, "one");
  REQUIRE(broken.wait_for("one"));
  broken.close();
  rig.host.run_for(20);
  const std::string large(rig.limits.event_buffer_bytes, 'x');
  CHECK(rig.answer(d, R"({"jsonrpc":"2.0","id":"c-7","result":")" + large + "\"}") == BH_OK);
  const Response r = client.request(get(rig, id, last_event(std::to_string(d.stream) + "-1")));
  CHECK(r.status == 200);
  CHECK(r.has(R"("id":"c-7","error":)"));
  CHECK(r.has("event_buffer_bytes"));
  CHECK(rig.host.metric("http.events_dropped") == 1);
}

TEST_CASE("the host may close other sessions when it is notified of a closed session") {
  bh_limits limits = test_limits();
  limits.session_idle_ms = 1'500;
  Rig rig(any_port, limits);
  Client client(rig);
  for (int i = 0; i < 32; ++i) initialize(rig, client);
  rig.on_close = [&](bh_session) {
    while (!rig.open.empty()) {
      const bh_session other = rig.open.begin()->first;
      rig.open.erase(other);
      rig.transport->session_ended(rig.plugin->self, other, bh::str("because"));
    }
  };
  REQUIRE(rig.host.run_until([&] { return !rig.closed.empty(); }, 20'000));
  CHECK(rig.closed.size() == 1);
  CHECK(rig.open.empty());
}
