// Test fixture for requests of clients: the request pipeline, and the parts that find the target of
// a request.
#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "route/call_world.hpp"
#include "route/client_requests.hpp"
#include "route/task_ids.hpp"
#include "route/views.hpp"

namespace bulkhead {

// One server, whose lane is the only one of the session's view.
struct RequestWorld : World {
  Upstreams upstreams;
  FilteredLists filters{{gate, pins, names, profile.limits, counters, *loop,
                         [](std::int32_t, std::string_view) {}, [](std::uint64_t, bool) {},
                         [](View &) {}, [] {}}};
  Views views{{upstreams, sessions, names, profile, *loop, recorder, answers, filters,
               [](Session &, Incoming &) {}, [](View &) {}, [](Lane &) {}, [] {}, [] {}}};
  Targets targets{{upstreams, views, names, gate, answers}};
  ListRequests lists{1,
                     {sessions, views, names, profile, recorder, answers, [](const Session &) {}}};
  TaskIds ids{{}};
  TaskRequests tasks{{ids, *loop, answers}};
  ClientRequests requests{{profile.expose, lists, targets, tasks, subscriptions, calls, answers}};
  View view;

  RequestWorld() {
    view.owner = &views;
    view.lanes = {&lane};
    view.clients = {&session};
    session.view = &view;
    lane.set_caps({.tools = true,
                   .resources = true,
                   .subscribe = true,
                   .prompts = true,
                   .completions = true});
    lane.list(ItemKind::tool,
              R"({"tools":[{"name":"t","inputSchema":{"type":"object","properties":{"region":)"
              R"({"type":"string","x-mcp-header":"Region"}}}}]})");
    lane.list(ItemKind::prompt, R"({"prompts":[{"name":"p"}]})");
    lane.list(ItemKind::resource, R"({"resources":[{"uri":"note:///1","name":"one"}]})");
  }
  ~RequestWorld() override {
    session.view = nullptr;
    while (session.open_calls.head != nullptr) ends.end_session(session);
  }
  // Sends a request, and returns "CODE STATUS TEXT" if it was rejected, "result" if it was answered
  // and "call" if a call was opened.
  std::string ask(const std::string &method, const std::string &params,
                  const WireHeaders *headers = nullptr, const RequestState *state = nullptr) {
    client.sent.clear();
    const std::size_t before = table.size();
    Scanned message(R"({"jsonrpc":"2.0","id":"c","method":")" + method + R"(","params":)" + params +
                    "}");
    Incoming incoming{{session.handle, 7, 0}, message.get(), loop->now_ns(), false, headers, state};
    requests.answer(session, incoming);
    if (table.size() != before) return client.sent.empty() ? "call" : "call and answer";
    return answered();
  }
  std::string answered() const {
    if (client.sent.size() != 1) return "silence";
    const FakeClient::Sent &sent = client.sent[0];
    CHECK(mcp::member(sent.text, "id") == "\"c\"");
    const std::string_view error = mcp::member(sent.text, "error");
    if (error.empty()) return "result";
    return std::string(mcp::member(error, "code")) + " " + std::to_string(sent.http_status) + " " +
           std::string(mcp::member(error, "message"));
  }
  const Call &last_call() const {
    const Call *last = nullptr;
    for (const Call *call = session.open_calls.head; call != nullptr; call = call->session_next) {
      if (last == nullptr || call->id > last->id) last = call;
    }
    REQUIRE(last != nullptr);
    return *last;
  }
  std::string uri() { return names.compose_uri("s", "note:///1"); }
};

}  // namespace bulkhead
