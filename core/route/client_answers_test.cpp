#include "route/client_answers.hpp"

#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "route/client_fakes.hpp"
#include "route/protocol.hpp"

using namespace bulkhead;

namespace {

// A telemetry plugin that requires commits. The test commits the records.
const bh_telemetry committing = {
    sizeof(bh_telemetry),
    0,
    [](void *, const bh_record *const *, std::uint32_t n) -> std::uint32_t { return n; },
    [](void *) -> std::uint32_t {
      return BH_TELEMETRY_TEXTS | BH_TELEMETRY_EVENTS | BH_TELEMETRY_COMMITS;
    },
};

struct World {
  Limits limits;
  std::unique_ptr<Reactor> reactor = *Reactor::create();
  Recorder recorder{*reactor};
  RouterCounters counters;
  Sessions sessions{1};
  std::uint32_t idle_checks = 0;
  ClientAnswers answers{sessions, recorder, *reactor, limits, counters, [this] { ++idle_checks; }};
  FakeClient client;
  Session &session = open_session(sessions, client);

  ReplyTo to(std::uint64_t stream, std::uint64_t batch = 0) const {
    return {session.handle, stream, batch};
  }
  const std::string &last() const { return client.sent.back().text; }
};

// A request that owns its text and its scan.
struct Request {
  std::string text;
  mcp::Scan scan;
  Incoming incoming;
  Request(const ReplyTo &reply, std::string message) : text(std::move(message)) {
    mcp::ScanError error;
    REQUIRE(mcp::scan(text, &scan, &error));
    incoming = {reply, {text, &scan}, 7};
  }
};

const std::string ping = R"({"jsonrpc":"2.0","id":"a\u0041","method":"ping"})";

}  // namespace

TEST_CASE("a response has the client's id as written and is sent on the stream of its request") {
  World w;
  w.answers.result(w.to(9), R"("a\u0041")", R"({"x":1})");
  REQUIRE(w.client.sent.size() == 1);
  CHECK(w.client.sent[0].kind == BH_OUT_ANSWER);
  CHECK(w.client.sent[0].session == w.session.handle);
  CHECK(w.client.sent[0].stream == 9);
  CHECK(w.last() == R"({"jsonrpc":"2.0","id":"a\u0041","result":{"x":1}})");
  CHECK(w.idle_checks == 1);

  w.answers.error(w.to(10), "7", -32602, "no \"such\" thing", 404, R"({"uri":"x"})");
  CHECK(w.last() == R"({"jsonrpc":"2.0","id":7,"error":{"code":-32602,)"
                    R"("message":"no \"such\" thing","data":{"uri":"x"}}})");
  CHECK(w.client.sent[1].http_status == 404);

  w.answers.error(w.to(11), {}, -32700, "not JSON");
  CHECK(w.last() == R"({"jsonrpc":"2.0","error":{"code":-32700,"message":"not JSON"}})");
}

TEST_CASE("the stream of a cancelled request is released without a message") {
  World w;
  w.answers.none(w.to(3));
  REQUIRE(w.client.sent.size() == 1);
  CHECK(w.last().empty());
  CHECK(w.client.sent[0].http_status == 202);
}

TEST_CASE(
    "a client that accepts only responses receives neither events nor server-initiated requests") {
  World w;
  Session &quiet = open_session(w.sessions, w.client, BH_PEER_ANSWERS_ONLY);
  w.answers.event({quiet.handle, 0, 0}, "{}");
  const bh_str part = bh::str("{}");
  w.answers.send({quiet.handle, 0, 0}, BH_OUT_ASK, &part, 1);
  CHECK(w.client.sent.empty());
  w.answers.result({quiet.handle, 1, 0}, "1", "{}");
  CHECK(w.client.sent.size() == 1);
}

TEST_CASE("messages for a closed session are dropped") {
  World w;
  const ReplyTo gone = w.to(1);
  w.sessions.erase(gone.session);
  w.answers.result(gone, "1", "{}");
  CHECK(w.client.sent.empty());
}

TEST_CASE("sending() is true while a transport's send() runs") {
  World w;
  struct Nosy : ClientEnd {
    World *world = nullptr;
    bool inside = false;
    void send(const bh_outgoing &) override { inside = world->answers.sending(); }
    void session_ended(bh_session, std::string_view) override {}
  } nosy;
  nosy.world = &w;
  Session &s = open_session(w.sessions, nosy);
  CHECK_FALSE(w.answers.sending());
  w.answers.event({s.handle, 0, 0}, "{}");
  CHECK(nosy.inside);
  CHECK_FALSE(w.answers.sending());
}

TEST_CASE("the responses to a batch are sent as one array once the last request has its response") {
  World w;
  ClientBatches &batches = w.answers.batches();
  const std::uint64_t batch = batches.open(w.to(5));
  for (int i = 0; i < 3; ++i) REQUIRE(batches.add(batch));
  batches.expect_answer(batch);
  w.answers.batch_message_done(batch);  // all messages of the batch have been read
  w.answers.result(w.to(5, batch), "1", "{}");
  w.answers.batch_message_done(batch);  // a notification of the batch
  CHECK(w.client.sent.empty());
  w.answers.error(w.to(5, batch), "2", -32601, "no");
  REQUIRE(w.client.sent.size() == 1);
  CHECK(w.last() == R"([{"jsonrpc":"2.0","id":1,"result":{}},)"
                    R"({"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"no"}}])");
  CHECK(w.client.sent[0].stream == 5);
  CHECK(w.session.batched_bytes == 0);
}

TEST_CASE(
    "a batch of cancelled requests releases its stream; a batch of notifications sends nothing") {
  World w;
  ClientBatches &batches = w.answers.batches();
  const std::uint64_t cancelled = batches.open(w.to(6));
  REQUIRE(batches.add(cancelled));
  batches.expect_answer(cancelled);
  w.answers.none(w.to(6, cancelled));
  w.answers.batch_message_done(cancelled);
  REQUIRE(w.client.sent.size() == 1);
  CHECK(w.last().empty());

  const std::uint64_t notifications = batches.open(w.to(7));
  REQUIRE(batches.add(notifications));
  w.answers.batch_message_done(notifications);
  w.answers.batch_message_done(notifications);
  CHECK(w.client.sent.size() == 1);
}

TEST_CASE(
    "pending responses to a session's batches are limited; above the limit, errors replace them") {
  World w;
  w.limits.write_queue_bytes = 400;
  ClientBatches &batches = w.answers.batches();
  const std::uint64_t one = batches.open(w.to(1)), two = batches.open(w.to(2));
  REQUIRE(batches.add(one));
  REQUIRE(batches.add(two));
  const std::string big = "\"" + std::string(300, 'x') + "\"";
  w.answers.result(w.to(1, one), "1", big);
  w.answers.result(w.to(2, two), "\"b\"", big);
  w.answers.batch_message_done(two);
  REQUIRE(w.client.sent.size() == 1);
  CHECK(w.last().find(R"("id":"b","error":{"code":-32000)") != std::string::npos);
  CHECK(w.last().find("limits.write_queue_bytes = 400") != std::string::npos);
  w.answers.batch_message_done(one);
  CHECK(w.last().find(big) != std::string::npos);
}

TEST_CASE(
    "a batch is discarded if its session ends, and the response to a silent batch is always "
    "discarded") {
  World w;
  ClientBatches &batches = w.answers.batches();
  const std::uint64_t lost = batches.open(w.to(1));
  const std::uint64_t silent = batches.open_silent(w.to(0));
  w.answers.result(w.to(0, silent), "1", "{}");
  CHECK(w.client.sent.empty());
  CHECK_FALSE(batches.add(silent));
  batches.forget_session(w.session);
  CHECK_FALSE(batches.add(lost));
}

TEST_CASE("a response waits until its record is committed, and later responses wait behind it") {
  World w;
  w.recorder.add_sink(&committing, &w);
  Request first(w.to(1), ping), second(w.to(2), ping);
  w.answers.result(first.incoming, R"({"n":1})");
  CHECK(first.incoming.recorded);
  const std::uint64_t below = w.recorder.barrier();
  w.answers.error(second.incoming, -32601, "no");
  CHECK(w.client.sent.empty());
  CHECK(w.answers.any_held());

  w.recorder.set_committed(&w, below);
  w.answers.records_committed();
  REQUIRE(w.client.sent.size() == 1);
  CHECK(w.last().find(R"("result":{"n":1})") != std::string::npos);
  CHECK(w.idle_checks == 0);  // one response is still held

  w.recorder.set_committed(&w, w.recorder.barrier());
  w.answers.records_committed();
  REQUIRE(w.client.sent.size() == 2);
  CHECK(w.last().find(R"("error":{"code":-32601)") != std::string::npos);
  CHECK_FALSE(w.answers.any_held());
  CHECK(w.idle_checks == 1);
}

TEST_CASE("a request is recorded once, and an error about a missing record does not wait") {
  World w;
  w.recorder.add_sink(&committing, &w);
  Request request(w.to(1), ping);
  w.answers.record(request.incoming, BH_OUTCOME_OK, {}, "{}");
  const std::uint64_t barrier = w.recorder.barrier();
  w.answers.error(request.incoming, -32601, "no");
  CHECK(w.recorder.barrier() == barrier);
  CHECK(w.client.sent.empty());
  w.answers.unrecorded_error(w.to(2), "2", -32603, "the disk is full");
  REQUIRE(w.client.sent.size() == 1);
  CHECK(w.last().find("the disk is full") != std::string::npos);
}

TEST_CASE("an error replaces a response whose record is not committed in time") {
  World w;
  w.recorder.add_sink(&committing, &w);
  Request ran(w.to(1), ping), asked(w.to(2), ping);
  w.answers.record(ran.incoming, BH_OUTCOME_OK, {}, "{}");
  const bh_str part = bh::str(R"({"jsonrpc":"2.0","id":"x","result":{"secret":1}})");
  w.answers.answer(w.to(1), &part, 1);
  w.answers.result(asked.incoming, "{}");
  w.answers.none(w.to(3));
  struct Ends {
    World *w;
  } ends{&w};
  struct Again {
    static void look(void *arg) {
      World &world = *static_cast<Ends *>(arg)->w;
      // Polls until all three responses have been sent, so the test does not depend on timing.
      if (world.client.sent.size() >= 3) return world.reactor->stop();
      world.reactor->timer_start(arg, 100, &Again::look, arg);
    }
  };
  Again::look(&ends);
  w.reactor->run();
  REQUIRE(w.client.sent.size() == 3);
  CHECK(w.client.sent[0].text.find("secret") == std::string::npos);
  CHECK(w.client.sent[0].text.find(R"("id":"x")") != std::string::npos);
  CHECK(w.client.sent[0].text.find("the request may have run") != std::string::npos);
  CHECK(w.client.sent[1].text.find("no server has run the request") != std::string::npos);
  CHECK(w.client.sent[2].text.empty());
  CHECK(w.counters.answers_withheld == 2);
}
