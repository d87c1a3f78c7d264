// Tests event streams: conversion of responses, the general stream, resumption and HTTP+SSE.
#include "testing.hpp"

using namespace transport_http::testing;

namespace {

using Delivered = Rig::Delivered;

// Sends a request that is answered later. Returns the message that the host received.
Delivered start(Rig &rig, Client &client, const std::string &id, std::string_view fields = {}) {
  const std::size_t before = rig.delivered.size();
  client.send(post(rig, "later", id, fields));
  REQUIRE(rig.host.run_until([&] { return rig.delivered.size() > before; }, 20'000));
  return rig.delivered.back();
}

bool wait_gone(Rig &rig) {
  return rig.host.run_until([&] { return !rig.gone.empty(); }, 20'000);
}

std::string last_event(std::string_view id) {
  return "Last-Event-ID: " + std::string(id) + "\r\n";
}

}  // namespace

TEST_CASE(
    "an event before the response starts an event stream, and the connection is reused "
    "afterwards") {
  Rig rig;
  Client client(rig);
  const std::string id = initialize(rig, client);
  const Delivered d = start(rig, client, id);
  CHECK(rig.event(d, "{\"n\":1}") == BH_OK);
  CHECK(rig.send(BH_OUT_ASK, d.session, d.stream, "{\"n\":2}") == BH_OK);
  REQUIRE(client.wait_for("{\"n\":2}"));
  CHECK(rig.answer(d, "{\"n\":3}") == BH_OK);
  const Response r = client.response();
  CHECK(r.status == 200);
  CHECK(r.chunked);
  CHECK(r.field("Content-Type") == "text/event-stream");
  CHECK(r.field("Cache-Control").find("no-cache") == 0);
  CHECK(r.field("X-Accel-Buffering") == "no");
  const std::string n = std::to_string(d.stream);
  CHECK(r.body == "id: " + n + "-1\ndata: {\"n\":1}\n\nid: " + n +
                      "-2\ndata: {\"n\":2}\n\nid: " + n + "-3\ndata: {\"n\":3}\n\n");
  CHECK(client.request(post(rig, "echo on", id)).body == "echo on");
}

TEST_CASE("clients of revision 2025-11-25 get an empty first event") {
  Rig rig;
  Client client(rig);
  const std::string id = initialize(rig, client);
  const std::string fields = "MCP-Protocol-Version: 2025-11-25\r\n";
  const Delivered d = start(rig, client, id, fields);
  rig.event(d, "1");
  rig.answer(d, "2");
  const std::string n = std::to_string(d.stream);
  CHECK(client.response().body == "id: " + n + "-0\nretry: 1000\ndata: \n\nid: " + n +
                                      "-1\ndata: 1\n\nid: " + n + "-2\ndata: 2\n\n");
  client.send(get(rig, id, fields));
  CHECK(client.wait_for("id: 0-0\nretry: 1000\ndata: \n\n"));
}

TEST_CASE("line breaks in a message do not split its event") {
  Rig rig;
  Client client(rig);
  const std::string id = initialize(rig, client);
  const Delivered d = start(rig, client, id);
  rig.event(d, "{\n\"a\":\r\n1,\r\"b\":2}");
  rig.answer(d, "x");
  CHECK(client.response().has("data: {\ndata: \"a\":\ndata: 1,\ndata: \"b\":2}\n\n"));
}

TEST_CASE("the response to initialize contains the session id even if an event precedes it") {
  Rig rig;
  Client client(rig);
  const Response r = client.request(post(rig, "progress initialize"));
  CHECK(r.chunked);
  CHECK(r.field("Mcp-Session-Id").size() == 32);
  CHECK(client.request(post(rig, "echo 1", r.field("Mcp-Session-Id"))).body == "echo 1");
}

TEST_CASE("HTTP/1.0 clients get events until the connection is closed") {
  Rig rig;
  Client client(rig);
  const std::string id = initialize(rig, client);
  std::string text = post(rig, "progress now", id, "Connection: keep-alive\r\n");
  text.replace(text.find("HTTP/1.1"), 8, "HTTP/1.0");
  client.send(text);
  REQUIRE(client.wait_closed());
  CHECK(client.bytes().find("Transfer-Encoding") == std::string::npos);
  CHECK(client.bytes().find("\r\n\r\nid: ") != std::string::npos);
  CHECK(client.bytes().ends_with("data: {\"result\":\"ok\"}\n\n"));
}

TEST_CASE(
    "the general stream sends missed events, then new events; the newest connection is used") {
  Rig rig;
  Client client(rig);
  const std::string id = initialize(rig, client);
  const bh_session session = rig.last_session;
  CHECK(rig.send(BH_OUT_EVENT, session, 0, "one") == BH_OK);
  CHECK(rig.send(BH_OUT_ANSWER, session, 0, "wrong") == BH_STALE);

  Client first(rig);
  first.send(get(rig, id));
  REQUIRE(first.wait_for("id: 0-1\ndata: one\n\n"));
  CHECK(rig.send(BH_OUT_EVENT, session, 0, "two") == BH_OK);
  REQUIRE(first.wait_for("id: 0-2\ndata: two\n\n"));

  Client second(rig);
  second.send(get(rig, id));
  const Response ended = first.response();
  CHECK(ended.chunked);
  CHECK(ended.has("two"));
  rig.send(BH_OUT_EVENT, session, 0, "three");
  REQUIRE(second.wait_for("id: 0-3\ndata: three\n\n"));
  CHECK(second.bytes().find("two") == std::string::npos);

  // Replay starts after the last event ID that the client sends, not after the last event that was
  // written.
  Client third(rig);
  third.send(get(rig, id, last_event("0-1")));
  REQUIRE(third.wait_for("three"));
  CHECK(third.bytes().find("two") != std::string::npos);
  CHECK(third.bytes().find("one") == std::string::npos);

  // Without a stream, events are queued. DELETE ends the open stream.
  third.close();
  rig.host.run_for(20);
  rig.send(BH_OUT_EVENT, session, 0, "four");
  Client fourth(rig);
  fourth.send(get(rig, id));
  REQUIRE(fourth.wait_for("four"));
  CHECK(fourth.bytes().find("three") == std::string::npos);
  CHECK(client.request(get(rig, id, {}, "/mcp", "DELETE")).status == 204);
  CHECK(fourth.response().has("four"));
  CHECK(rig.send(BH_OUT_EVENT, session, 0, "five") == BH_STALE);
}

TEST_CASE("events waiting for the general stream are limited, and the oldest are dropped") {
  Rig rig;
  Client client(rig);
  const std::string id = initialize(rig, client);
  for (int i = 0; i < 100; ++i) {
    CHECK(rig.send(BH_OUT_EVENT, rig.last_session, 0,
                   "event-" + std::to_string(i) + std::string(90, '.')) == BH_OK);
  }
  CHECK(rig.send(BH_OUT_EVENT, rig.last_session, 0, std::string(10'000, 'x')) == BH_OK);
  client.send(get(rig, id));
  REQUIRE(client.wait_for("event-99."));
  CHECK(client.bytes().find("event-50.") == std::string::npos);
  CHECK(client.bytes().find("xxxx") == std::string::npos);
  CHECK(rig.host.metric("http.events_dropped") > 50);
}

TEST_CASE("a broken event stream is resumed with its response, without notifying the host") {
  Rig rig;
  Client client(rig);
  const std::string id = initialize(rig, client);
  Client broken(rig);
  const Delivered d = start(rig, broken, id);
  const std::string n = std::to_string(d.stream);
  rig.event(d, "one");
  rig.event(d, "two");
  REQUIRE(broken.wait_for("two"));
  broken.close();
  rig.host.run_for(20);
  CHECK(rig.event(d, "three") == BH_OK);

  SECTION("resumed before the response: replay, then new events") {
    client.send(get(rig, id, last_event(n + "-1")));
    REQUIRE(client.wait_for("three"));
    CHECK(rig.event(d, "four") == BH_OK);
    CHECK(rig.answer(d, "answer") == BH_OK);
    const Response r = client.response();
    CHECK(r.body == "id: " + n + "-2\ndata: two\n\nid: " + n + "-3\ndata: three\n\nid: " + n +
                        "-4\ndata: four\n\nid: " + n + "-5\ndata: answer\n\n");
    CHECK(client.request(post(rig, "echo on", id)).body == "echo on");
  }
  SECTION("resumed after the response") {
    CHECK(rig.answer(d, "answer") == BH_OK);
    rig.send(BH_OUT_EVENT, d.session, 0, "general");
    const Response r = client.request(get(rig, id, last_event(n + "-3")));
    CHECK(r.body == "id: " + n + "-4\ndata: answer\n\n");
    // Requesting the stream again returns the same events.
    CHECK(client.request(get(rig, id, last_event(n + "-3"))).has("answer"));
    CHECK(client.request(get(rig, id, last_event(n + "-4"))).body.empty());
  }
  SECTION("resumed twice") {
    Client again(rig);
    again.send(get(rig, id, last_event(n + "-2")));
    REQUIRE(again.wait_for("three"));
    client.send(get(rig, id, last_event(n + "-2")));
    REQUIRE(client.wait_for("three"));
    CHECK(again.response().has("three"));
    rig.answer(d, "answer");
    CHECK(client.response().has("answer"));
  }
  CHECK(rig.gone.empty());
  CHECK(rig.closed.empty());
}

TEST_CASE("a response for a broken connection without an event stream is dropped") {
  Rig rig;
  Client client(rig);
  const std::string id = initialize(rig, client);
  Client broken(rig);
  const Delivered d = start(rig, broken, id);
  broken.close();
  REQUIRE(wait_gone(rig));
  CHECK(rig.gone[0] == std::make_pair(d.session, d.stream));
  CHECK(rig.answer(d, "x") == BH_STALE);
  CHECK(rig.event(d, "x") == BH_STALE);
  CHECK(client.request(get(rig, id, last_event(std::to_string(d.stream) + "-0"))).status == 400);
  CHECK(client.request(post(rig, "echo on", id)).body == "echo on");
}

TEST_CASE("a stream that is not an event stream cannot be resumed") {
  Rig rig;
  Client client(rig);
  const std::string id = initialize(rig, client);
  Client waiting(rig);
  const Delivered d = start(rig, waiting, id);
  CHECK(client.request(get(rig, id, last_event(std::to_string(d.stream) + "-0"))).status == 400);
  rig.answer(d, "mine");
  CHECK(waiting.response().body == "mine");
}

TEST_CASE("events of another session cannot be read") {
  Rig rig;
  Client client(rig);
  const std::string id = initialize(rig, client);
  Client broken(rig);
  const Delivered d = start(rig, broken, id);
  rig.event(d, "private");
  REQUIRE(broken.wait_for("private"));
  const std::string other = initialize(rig, client);
  CHECK(client.request(get(rig, other, last_event(std::to_string(d.stream) + "-0"))).status == 400);
}

TEST_CASE("when the host ends a session, its pending requests end, and its id becomes unknown") {
  Rig rig;
  Client client(rig);
  const std::string id = initialize(rig, client);
  const bh_session session = rig.last_session;
  Client general(rig), json(rig), events(rig);
  general.send(get(rig, id));
  REQUIRE(general.wait_for("\r\n\r\n"));
  start(rig, json, id);
  rig.event(start(rig, events, id), "one");
  REQUIRE(events.wait_for("one"));
  rig.transport->session_ended(rig.plugin->self, session, bh::str("enough"));
  CHECK(general.response().body.empty());
  CHECK(json.response().status == 404);
  CHECK(events.response().has("one"));
  CHECK(client.request(post(rig, "now", id)).status == 404);
  CHECK(rig.closed.empty());
}

TEST_CASE("a pending response without output becomes an event stream and is kept alive") {
  Rig rig(R"({"listen":"127.0.0.1:0","keep_alive_ms":100})");
  Client client(rig);
  const std::string id = initialize(rig, client);
  Client general(rig);
  general.send(get(rig, id));
  const Delivered d = start(rig, client, id);
  REQUIRE(client.wait_for(":\n\n\r\n3\r\n:\n\n"));
  REQUIRE(general.wait_for("3\r\n:\n\n"));
  rig.answer(d, "at last");
  CHECK(client.response().has("data: at last\n\n"));
}

TEST_CASE(
    "HTTP+SSE: the stream carries the endpoint, responses and events, and the session ends with "
    "it") {
  Rig rig;
  Client stream(rig);
  stream.send(get(rig, {}, {}, "/sse"));
  REQUIRE(stream.wait_for("event: endpoint\ndata: /messages?sessionId="));
  std::string path = stream.bytes().substr(stream.bytes().find("data: ") + 6);
  path = path.substr(0, path.find('\n'));
  REQUIRE(path.size() == std::string("/messages?sessionId=").size() + 32);

  Client client(rig);
  const Response r = client.request(post(rig, "echo 1", {}, {}, path));
  CHECK(r.status == 202);
  CHECK(r.body == "Accepted");
  CHECK(stream.wait_for("event: message\ndata: echo 1\n\n"));
  CHECK(rig.delivered.back().stream == 0);
  CHECK(rig.send(BH_OUT_EVENT, rig.last_session, 0, "news") == BH_OK);
  CHECK(stream.wait_for("event: message\ndata: news\n\n"));
  CHECK(client.request(post(rig, "later", {}, {}, path)).status == 202);
  CHECK(rig.answer(rig.delivered.back(), "later 1") == BH_OK);
  CHECK(stream.wait_for("data: later 1\n\n"));

  const std::string id = path.substr(path.find('=') + 1);
  CHECK(client.request(post(rig, "now", {}, {}, "/messages")).status == 404);
  CHECK(client.request(post(rig, "now", {}, {}, "/messages?sessionId=x&y")).status == 404);
  CHECK(client.request(get(rig, {}, {}, path)).status == 405);
  CHECK(client.request(post(rig, "now", {}, {}, "/sse")).status == 405);
  // The two transports do not share sessions.
  CHECK(client.request(post(rig, "now", id)).status == 404);
  const std::string other = initialize(rig, client);
  CHECK(client.request(post(rig, "now", {}, {}, "/messages?sessionId=" + other)).status == 404);

  stream.close();
  REQUIRE(rig.host.run_until([&] { return rig.closed.size() == 1; }, 20'000));
  CHECK(client.request(post(rig, "now", {}, {}, path)).status == 404);
}

TEST_CASE("the paths of HTTP+SSE can be changed or disabled") {
  SECTION("changed paths") {
    Rig rig(R"({"listen":"127.0.0.1:0","sse_path":"/old/events"})");
    Client client(rig);
    client.send(get(rig, {}, {}, "/old/events"));
    CHECK(client.wait_for("data: /old/messages?sessionId="));
  }
  SECTION("disabled") {
    Rig rig(R"({"listen":"127.0.0.1:0","sse_path":""})");
    Client client(rig);
    CHECK(client.request(get(rig, {}, {}, "/sse")).status == 404);
  }
}

TEST_CASE("stop ends all streams and notifies the host") {
  Rig rig;
  Client client(rig);
  const std::string id = initialize(rig, client);
  client.send(get(rig, id));
  REQUIRE(client.wait_for("\r\n\r\n"));
  rig.transport->stop_accepting(rig.plugin->self);
  rig.plugin->stop(rig.plugin->self);
  CHECK(client.response().chunked);
  CHECK(client.wait_closed());
  CHECK(rig.closed.size() == 1);
  CHECK(rig.host.watches() == 0);
}

TEST_CASE("draining completes pending responses and accepts no new connections") {
  Rig rig;
  Client client(rig);
  const std::string id = initialize(rig, client);
  const Delivered d = start(rig, client, id);
  rig.plugin->drain(rig.plugin->self, 0);
  rig.answer(d, "done");
  CHECK(client.response().body == "done");
  const Response last = client.request(post(rig, "echo 1", id));
  CHECK(last.field("Connection") == "close");
  CHECK(client.wait_closed());
}
