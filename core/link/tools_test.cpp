// Tests which plugin receives a tool call over a link, both normally and while a reload replaces
// the server stub's process.
#include <catch2/catch.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bulkhead/cpp/basics.hpp"
#include "bulkhead/cpp/tools.hpp"
#include "link/client_stub.hpp"
#include "link/server_stub.hpp"

using namespace bulkhead;
using namespace bulkhead::link;

namespace {

// Stores the calls and lists that a client stub reports.
struct Heard final : ClientStubEvents {
  std::vector<std::string> results, errors;
  std::vector<std::pair<std::string, std::uint32_t>> changes;
  void lane_message(bh_lane, std::uint64_t, std::string_view) override {}
  void lane_exchange_failed(bh_lane, std::uint64_t, const LaneFailure &) override {}
  void lane_down(bh_lane, const LaneFailure &failure) override {
    errors.push_back(failure.error.text);
  }
  void lane_closed(bh_lane) override {}
  void call_complete(bh_call, std::uint32_t, std::string_view json) override {
    results.emplace_back(json);
  }
  void call_failed(bh_call, const Error &error) override { errors.push_back(error.text); }
  void call_progress(bh_call, double, double, std::string_view) override {}
  void call_event(bh_call call, std::uint32_t, std::string_view detail) override {
    events.push_back(std::to_string(call) + " " + std::string(detail));
  }
  void tools_changed(const std::string &plugin, std::uint32_t kind) override {
    changes.emplace_back(plugin, kind);
  }
  void tools_began(const std::string &plugin) override { began.push_back(plugin); }
  void resource_updated(const std::string &plugin, std::string_view uri) override {
    updates.push_back(plugin + " " + std::string(uri));
  }
  std::vector<std::string> began, updates, events;
};

// A tools plugin with one tool. The tool's name is the plugin's ID, and so is the result of every
// call.
struct Tool {
  std::string id;
  ServerStub **server = nullptr;
  std::size_t cancelled = 0;
  bool answers = true;
  bh_status lists = BH_OK;         // returned by list()
  std::vector<std::string> calls;  // method and name
  std::vector<bh_call> pending;
  std::vector<std::pair<std::uint32_t, std::string>> reasons;  // of the cancellations
  std::vector<std::string> infos;                              // see call_begin()
  bh_status begins = BH_OK;                                    // returned instead of executing
  std::function<void()> on_cancel;

  static bh_status list(void *self, const bh_list_info *info, bh_buf *out, bh_error *error) {
    if (info->kind != BH_LIST_TOOLS) return BH_E_UNSUPPORTED;
    const bh_status status = static_cast<Tool *>(self)->lists;
    if (status != BH_OK) return bh::fail(error, status, "the folder has gone");
    *out = bh::buf("[{\"name\":\"" + static_cast<Tool *>(self)->id + "\"}]");
    return BH_OK;
  }
  static bh_status call_begin(void *self, bh_call call, const bh_call_info *info, bh_error *) {
    auto &tool = *static_cast<Tool *>(self);
    tool.calls.push_back(std::string(bh::view(info->method)) + " " +
                         std::string(bh::view(info->name)));
    std::string texts = std::to_string(info->flags) + " " + std::to_string(info->session);
    for (const bh_str text : {info->arguments, info->principal, info->traceparent,
                              info->input_responses, info->request_state}) {
      texts.append(" ").append(bh::view(text));
    }
    tool.infos.push_back(texts);
    if (tool.begins != BH_OK) return tool.begins;
    if (!tool.answers) {
      tool.pending.push_back(call);
      return BH_PENDING;
    }
    (*tool.server)->complete(call, BH_RESULT_OK, tool.id);
    return BH_OK;
  }
  static void call_cancel(void *self, bh_call, const bh_cancel *cancel) {
    auto &tool = *static_cast<Tool *>(self);
    ++tool.cancelled;
    tool.reasons.emplace_back(cancel->reason, bh::view(cancel->text));
    if (tool.on_cancel) tool.on_cancel();
  }
  static std::uint32_t features(void *self) {
    return static_cast<Tool *>(self)->id == "notes" ? BH_TOOLS_SUBSCRIBE : 0;
  }
};
constexpr bh_tools tool_table{sizeof(bh_tools), 0, Tool::list, Tool::call_begin, Tool::call_cancel,
                              Tool::features};

bh_limits limits_for_tests() {
  bh_limits limits{};
  limits.size = sizeof limits;
  limits.message_bytes = 64u << 10;
  limits.write_queue_bytes = 8u << 20;
  return limits;
}

// One process at the other end of the link.
struct Process {
  std::vector<std::unique_ptr<Tool>> tools;
  std::vector<ServedPlugin> plugins;
  std::map<std::string, std::string> definitions;
  std::unique_ptr<ServerStub> server;
  ServerStub *at = nullptr;

  Process(Reactor &reactor, const bh_limits &limits, const std::vector<std::string> &ids) {
    for (const std::string &id : ids) {
      tools.push_back(std::make_unique<Tool>());
      tools.back()->id = id;
      tools.back()->server = &at;
      ServedPlugin &plugin = plugins.emplace_back();
      plugin.id = id;
      plugin.tools = &tool_table;
      plugin.self = tools.back().get();
    }
    server = std::make_unique<ServerStub>(reactor, limits, plugins, definitions);
    at = server.get();
  }
};

struct Link {
  std::unique_ptr<Reactor> reactor = std::move(*Reactor::create());
  bh_limits limits = limits_for_tests();
  Heard heard;
  ClientStub client{*reactor, "files", limits, heard};
  bh_call last_call = 0;

  void attach(Process &process) {
    auto pair = socket_pair();
    REQUIRE(pair.has_value());
    process.server->attach(std::move(pair->second));
    client.attach(std::move(pair->first));
  }
  bool until(const std::function<bool()> &done) {
    for (int i = 0; i < 2000 && !done(); ++i) reactor->poll(5);
    return done();
  }
  void call(void *self, std::string_view method = "tools/call", std::string_view name = {}) {
    bh_call_info info{};
    info.size = sizeof info;
    info.method = bh::str(method);
    info.name = bh::str(name);
    bh_error error = bh::make_error();
    REQUIRE(ClientStub::tools().call_begin(self, ++last_call, &info, &error) == BH_PENDING);
  }
  // Returns the tools that the plugin lists, or "pending".
  std::string listed(void *self) {
    bh_buf buf{};
    bh_error error = bh::make_error();
    const bh_list_info info = bh::list_info(BH_LIST_TOOLS);
    const bh_status status = ClientStub::tools().list(self, &info, &buf, &error);
    const bh::Buf owned(buf);
    return status == BH_PENDING ? "pending" : std::string(owned.view());
  }
};

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE(
    "a call runs in the plugin with its id, even if the next process numbers plugins differently") {
  Link link;
  Process before(*link.reactor, link.limits, {"notes"});
  void *notes = link.client.fresh_tools("notes");
  link.attach(before);
  REQUIRE(link.until([&] { return link.listed(notes) != "pending"; }));
  link.call(notes);
  REQUIRE(link.until([&] { return link.heard.results.size() == 1; }));

  Process after(*link.reactor, link.limits, {"archive", "notes"});
  void *archive = link.client.fresh_tools("archive");
  link.attach(after);
  REQUIRE(link.until([&] { return link.listed(archive) != "pending"; }));
  link.call(notes);
  link.call(archive);
  REQUIRE(link.until([&] { return link.heard.results.size() == 3; }));
  CHECK(link.heard.results == Names{"notes", "notes", "archive"});
  CHECK(link.listed(notes) == R"([{"name":"notes"}])");
  CHECK(link.listed(archive) == R"([{"name":"archive"}])");

  Process last(*link.reactor, link.limits, {"notes"});
  link.attach(last);
  link.call(notes);
  REQUIRE(link.until([&] { return link.heard.results.size() == 4; }));
  CHECK(link.heard.results.back() == "notes");
  CHECK(link.heard.errors.empty());
}

TEST_CASE("a call for a plugin that the other process does not run is rejected") {
  Link link;
  Process process(*link.reactor, link.limits, {"notes"});
  link.attach(process);
  link.call(link.client.plugin("gone"));
  REQUIRE(link.until([&] { return link.heard.errors.size() == 1; }));
  CHECK(link.heard.errors[0].find("is not running plugin \"gone\"") != std::string::npos);
  bh_lane_info info{};
  info.size = sizeof info;
  info.server = bh::str("s");
  void *lane = nullptr;
  bh_error error = bh::make_error();
  REQUIRE(ClientStub::connector().lane_open(link.client.plugin("gone"), 1, &info, &lane, &error) ==
          BH_OK);
  REQUIRE(link.until([&] { return link.heard.errors.size() == 2; }));
  CHECK(link.heard.errors[1].find("is not running plugin \"gone\"") != std::string::npos);
}

TEST_CASE("lists that arrive before their plugin is known are requested later") {
  Link link;
  Process process(*link.reactor, link.limits, {"archive", "notes"});
  void *notes = link.client.fresh_tools("notes");
  link.attach(process);
  REQUIRE(link.until([&] { return link.listed(notes) != "pending"; }));
  void *archive = link.client.fresh_tools("archive");
  CHECK(link.listed(archive) == "pending");
  REQUIRE(link.until([&] { return link.listed(archive) != "pending"; }));
  CHECK(link.listed(archive) == R"([{"name":"archive"}])");
  CHECK(link.listed(notes) == R"([{"name":"notes"}])");
}

TEST_CASE("the lists of a recreated plugin are discarded and all requested again") {
  Link link;
  Process process(*link.reactor, link.limits, {"notes"});
  void *notes = link.client.fresh_tools("notes");
  link.attach(process);
  REQUIRE(link.until([&] { return link.listed(notes) != "pending"; }));
  CHECK(link.client.fresh_tools("notes") == notes);
  CHECK(link.listed(notes) == "pending");
  link.heard.changes.clear();
  REQUIRE(link.until([&] { return link.heard.changes.size() == 4; }));
  for (std::uint32_t kind = BH_LIST_TOOLS; kind <= BH_LIST_PROMPTS; ++kind) {
    CHECK(link.heard.changes[kind - 1] == std::pair<std::string, std::uint32_t>("notes", kind));
  }
}

TEST_CASE("a plugin whose list fails is reported as failed until it can list its items") {
  Link link;
  Process process(*link.reactor, link.limits, {"notes"});
  void *notes = link.client.fresh_tools("notes");
  const auto fails = [&] {
    return link.client.failure("notes").find("the folder has gone") != std::string_view::npos;
  };
  const auto recovers = [&] {
    process.tools[0]->lists = BH_OK;
    process.server->list_changed(0, BH_LIST_TOOLS);
    REQUIRE(link.until([&] { return link.listed(notes) == R"([{"name":"notes"}])"; }));
    CHECK(link.client.failure("notes").empty());
    CHECK(link.heard.began == Names{"notes"});
  };
  SECTION("from the start") {
    process.tools[0]->lists = BH_E_IO;
    link.attach(process);
    REQUIRE(link.until([&] { return !link.heard.changes.empty(); }));
    for (int i = 0; i < 10; ++i) link.reactor->poll(1);
    CHECK(fails());
    CHECK(link.heard.began.empty());
    process.server->list_changed(0, BH_LIST_RESOURCES);  // this list cannot be read either
    for (int i = 0; i < 10; ++i) link.reactor->poll(1);
    CHECK(fails());
    recovers();
  }
  SECTION("after a change") {
    link.attach(process);
    REQUIRE(link.until([&] { return link.heard.began.size() == 1; }));
    link.heard.began.clear();
    process.tools[0]->lists = BH_E_IO;
    process.server->list_changed(0, BH_LIST_TOOLS);
    REQUIRE(link.until(fails));
    recovers();
  }
  SECTION("but not while the list is pending") {
    process.tools[0]->lists = BH_PENDING;
    link.attach(process);
    for (int i = 0; i < 10; ++i) link.reactor->poll(1);
    CHECK(link.client.failure("notes").empty());
    CHECK(link.listed(notes) == "pending");
    recovers();
  }
}

TEST_CASE("a call is cancelled in the plugin that runs it") {
  Link link;
  Process process(*link.reactor, link.limits, {"archive", "notes"});
  process.tools[1]->answers = false;
  link.attach(process);
  void *notes = link.client.plugin("notes");
  link.call(notes);
  const std::string longer(BH_CANCEL_BYTES + 1, 'x');
  const bh_cancel cancel = bh::cancellation(BH_CANCEL_CLIENT, longer);
  ClientStub::tools().call_cancel(notes, link.last_call, &cancel);
  REQUIRE(link.until([&] { return process.tools[1]->cancelled == 1; }));
  CHECK(process.tools[0]->cancelled == 0);
  using Reasons = std::vector<std::pair<std::uint32_t, std::string>>;
  CHECK(process.tools[1]->reasons ==
        Reasons{{BH_CANCEL_CLIENT, std::string(BH_CANCEL_BYTES, 'x')}});
}

TEST_CASE("a plugin in another process receives all members of a call's description") {
  Link link;
  Process process(*link.reactor, link.limits, {"notes"});
  void *notes = link.client.plugin("notes");
  // Without a process, the call waits; it must not refer to the caller's strings then.
  const bool waits = GENERATE(true, false);
  if (!waits) link.attach(process);
  {
    std::string arguments = "{\"a\":1}", principal = "uid:1000",
                trace = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01",
                responses = "{\"r\":{}}", state = "the state";
    bh_call_info info{};
    info.size = sizeof info;
    info.flags = BH_CALL_PROGRESS | BH_CALL_SAMPLING;
    info.method = bh::str("tools/call");
    info.arguments = bh::str(arguments);
    info.session = 1ull << 40;
    info.principal = bh::str(principal);
    info.traceparent = bh::str(trace);
    info.input_responses = bh::str(responses);
    info.request_state = bh::str(state);
    bh_error error = bh::make_error();
    REQUIRE(ClientStub::tools().call_begin(notes, 7, &info, &error) == BH_PENDING);
    for (std::string *text : {&arguments, &principal, &trace, &responses, &state}) {
      std::fill(text->begin(), text->end(), '?');
    }
  }
  if (waits) link.attach(process);
  REQUIRE(link.until([&] { return link.heard.results.size() == 1; }));
  CHECK(process.tools[0]->infos ==
        Names{"9 1099511627776 {\"a\":1} uid:1000 "
              "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01 {\"r\":{}} the state"});
}

TEST_CASE("if the client stub disconnects, the plugin receives the reason for the cancellation") {
  Link link;
  Process process(*link.reactor, link.limits, {"notes"});
  process.tools[0]->answers = false;
  link.attach(process);
  link.call(link.client.plugin("notes"));
  REQUIRE(link.until([&] { return process.tools[0]->pending.size() == 1; }));
  auto pair = socket_pair();
  REQUIRE(pair.has_value());
  process.server->attach(std::move(pair->second));
  REQUIRE(process.tools[0]->reasons.size() == 1);
  CHECK(process.tools[0]->reasons[0].first == BH_CANCEL_HOST_LOST);
}

TEST_CASE("events of a disconnected client stub's calls do not reach the next one") {
  Link first, second;
  Process process(*first.reactor, first.limits, {"notes"});
  process.tools[0]->answers = false;
  first.attach(process);
  first.call(first.client.plugin("notes"));
  REQUIRE(first.until([&] { return process.tools[0]->pending.size() == 1; }));
  process.server->event(process.tools[0]->pending[0], BH_RECORD_CALL, "first");
  REQUIRE(first.until([&] { return first.heard.events == Names{"1 first"}; }));
  // The other client stub stands for a restarted endpoint, which uses the same numbers again.
  auto pair = socket_pair();
  REQUIRE(pair.has_value());
  process.server->attach(std::move(pair->second));
  second.client.attach(std::move(pair->first));
  second.call(second.client.plugin("notes"));
  const auto both = [&](const std::function<bool()> &done) {
    for (int i = 0; i < 2000 && !done(); ++i) {
      first.reactor->poll(1);
      second.reactor->poll(1);
    }
    return done();
  };
  REQUIRE(both([&] { return process.tools[0]->pending.size() == 2; }));
  process.server->event(process.tools[0]->pending[0], BH_RECORD_CALL, "late");
  process.server->event(process.tools[0]->pending[1], BH_RECORD_CALL, "second");
  REQUIRE(both([&] { return !second.heard.events.empty(); }));
  CHECK(second.heard.events == Names{"1 second"});
}

TEST_CASE("a draining process completes its calls while the next process receives all new calls") {
  Link link;
  Process before(*link.reactor, link.limits, {"notes"});
  before.tools[0]->answers = false;
  link.attach(before);
  void *notes = link.client.plugin("notes");
  link.call(notes);
  link.call(notes);
  REQUIRE(link.until([&] { return before.tools[0]->pending.size() == 2; }));
  // The client stub does not know yet that the process is draining.
  link.call(notes);
  before.server->drain();
  CHECK(!before.server->drained());
  REQUIRE(link.until([&] { return link.listed(notes) != "pending"; }));
  Process after(*link.reactor, link.limits, {"notes"});
  after.tools[0]->id = "next";
  link.attach(after);
  link.call(notes);
  REQUIRE(link.until([&] { return link.heard.results.size() == 2; }));
  CHECK(link.heard.results == Names{"next", "next"});
  CHECK(!before.server->drained());
  const bh_cancel cancel = bh::cancellation(BH_CANCEL_CLIENT);
  ClientStub::tools().call_cancel(notes, 1, &cancel);
  REQUIRE(link.until([&] { return before.tools[0]->cancelled == 1; }));
  CHECK(after.tools[0]->cancelled == 0);
  before.server->complete(before.tools[0]->pending[0], BH_RESULT_OK, "cancelled");
  before.server->complete(before.tools[0]->pending[1], BH_RESULT_OK, "last");
  REQUIRE(link.until([&] { return before.server->drained(); }));
  before.server.reset();
  REQUIRE(link.until([&] { return link.heard.results.size() == 3; }));
  CHECK(link.heard.results.back() == "last");
  CHECK(link.heard.errors.empty());
  CHECK(before.tools[0]->calls.size() == 2);
}

TEST_CASE("a call that is cancelled before a draining process refuses it never begins") {
  Link link;
  Process before(*link.reactor, link.limits, {"notes"});
  link.attach(before);
  void *notes = link.client.plugin("notes");
  REQUIRE(link.until([&] { return link.listed(notes) != "pending"; }));
  before.server->drain();  // the client stub does not know yet
  link.call(notes);
  const bh_cancel cancel = bh::cancellation(BH_CANCEL_CLIENT);
  ClientStub::tools().call_cancel(notes, link.last_call, &cancel);
  link.call(notes);
  Process after(*link.reactor, link.limits, {"notes"});
  after.tools[0]->id = "next";
  REQUIRE(link.until([&] { return before.server->drained(); }));
  link.attach(after);
  REQUIRE(link.until([&] { return link.heard.results.size() == 1; }));
  CHECK(before.tools[0]->calls.empty());
  CHECK(after.tools[0]->calls.size() == 1);
  CHECK(link.heard.errors.empty());
}

TEST_CASE("a process that is lost cancels each call that is in flight and not cancelled, once") {
  Link link;
  auto process = std::make_unique<Process>(*link.reactor, link.limits, Names{"notes"});
  Tool &tool = *process->tools[0];
  tool.answers = false;
  link.attach(*process);
  void *notes = link.client.plugin("notes");
  for (int i = 0; i < 3; ++i) link.call(notes);
  REQUIRE(link.until([&] { return tool.pending.size() == 3; }));
  const bh_cancel cancel = bh::cancellation(BH_CANCEL_CLIENT);
  ClientStub::tools().call_cancel(notes, 1, &cancel);
  REQUIRE(link.until([&] { return tool.cancelled == 1; }));
  tool.on_cancel = [&] { process->server->complete(tool.pending[2], BH_RESULT_OK, "{}"); };
  link.attach(*process);       // another gateway process
  CHECK(tool.cancelled == 2);  // the third call was completed while the second was cancelled
  CHECK(tool.reasons.back().first == BH_CANCEL_HOST_LOST);
}

TEST_CASE("a positive status of a plugin is an error, and is not taken for the link's own") {
  Link link;
  Process process(*link.reactor, link.limits, {"notes"});
  process.tools[0]->begins = BH_WOULD_BLOCK;
  link.attach(process);
  link.call(link.client.plugin("notes"));
  REQUIRE(link.until([&] { return link.heard.errors.size() == 1; }));
  CHECK(link.heard.errors[0].find("the status 2") != std::string::npos);
  CHECK(process.tools[0]->calls.size() == 1);
}

TEST_CASE("if a process exits before its calls complete, only these calls fail") {
  Link link;
  Process before(*link.reactor, link.limits, {"notes"});
  before.tools[0]->answers = false;
  link.attach(before);
  void *notes = link.client.plugin("notes");
  link.call(notes);
  REQUIRE(link.until([&] { return before.tools[0]->pending.size() == 1; }));
  Process after(*link.reactor, link.limits, {"notes"});
  link.attach(after);
  link.call(notes);
  before.server.reset();
  REQUIRE(link.until([&] { return link.heard.results.size() + link.heard.errors.size() == 2; }));
  CHECK(link.heard.results == Names{"notes"});
  CHECK(link.heard.errors.size() == 1);
}

TEST_CASE("the number of draining processes is limited") {
  Link link;
  std::vector<std::unique_ptr<Process>> all;
  void *notes = link.client.plugin("notes");
  constexpr std::size_t lives = 8, kept = 4;  // `kept` must equal ClientStub::max_ending
  for (std::size_t i = 0; i < lives; ++i) {
    all.push_back(
        std::make_unique<Process>(*link.reactor, link.limits, std::vector<std::string>{"notes"}));
    all.back()->tools[0]->answers = false;
    link.attach(*all.back());
    link.call(notes);
    REQUIRE(link.until([&] { return all.back()->tools[0]->pending.size() == 1; }));
  }
  CHECK(link.heard.errors.size() == lives - 1 - kept);
}

TEST_CASE("a process is drained only after a large response has been written to the socket") {
  Link link;
  constexpr std::size_t bytes = 8u << 20;
  link.limits.message_bytes = 2 * bytes;
  link.limits.write_queue_bytes = 4 * bytes;
  ClientStub client(*link.reactor, "files", link.limits, link.heard);
  Process process(*link.reactor, link.limits, {"notes"});
  process.tools[0]->answers = false;
  auto pair = socket_pair();
  REQUIRE(pair.has_value());
  process.server->attach(std::move(pair->second));
  client.attach(std::move(pair->first));
  link.call(client.plugin("notes"));
  link.call(client.plugin("notes"));
  REQUIRE(link.until([&] { return process.tools[0]->pending.size() == 2; }));
  process.server->drain();
  for (const bh_call call : process.tools[0]->pending) {
    process.server->complete(call, BH_RESULT_OK, std::string(bytes, 'x'));
  }
  REQUIRE(link.until([&] { return process.server->drained(); }));
  process.server.reset();
  REQUIRE(link.until([&] { return link.heard.results.size() + link.heard.errors.size() == 2; }));
  CHECK(link.heard.errors.empty());
  for (const std::string &result : link.heard.results) CHECK(result.size() == bytes);
}

TEST_CASE("subscriptions and updates cross a link") {
  Link link;
  Process process(*link.reactor, link.limits, {"archive", "notes"});
  void *archive = link.client.fresh_tools("archive"), *notes = link.client.fresh_tools("notes");
  CHECK(ClientStub::tools().features(notes) == 0);  // not known yet
  link.attach(process);
  REQUIRE(link.until([&] { return link.heard.began.size() == 2; }));
  CHECK(ClientStub::tools().features(archive) == 0);
  CHECK(ClientStub::tools().features(notes) == BH_TOOLS_SUBSCRIBE);
  link.call(notes, "resources/subscribe", "note:///1");
  REQUIRE(link.until([&] { return link.heard.results.size() == 1; }));
  CHECK(process.tools[1]->calls == Names{"resources/subscribe note:///1"});
  process.server->resource_updated(1, "note:///1");
  REQUIRE(link.until([&] { return link.heard.updates.size() == 1; }));
  CHECK(link.heard.updates[0] == "notes note:///1");
}

TEST_CASE("subscriptions of a disconnected client stub end in the plugin") {
  Link link;
  Process process(*link.reactor, link.limits, {"archive", "notes"});
  link.attach(process);
  void *notes = link.client.plugin("notes");
  for (const char *uri : {"note:///1", "note:///2"}) link.call(notes, "resources/subscribe", uri);
  link.call(notes, "resources/unsubscribe", "note:///1");
  REQUIRE(link.until([&] { return link.heard.results.size() == 3; }));
  auto pair = socket_pair();
  REQUIRE(pair.has_value());
  process.server->attach(std::move(pair->second));
  CHECK(process.tools[1]->calls.back() == "resources/unsubscribe note:///2");
  CHECK(process.tools[1]->calls.size() == 4);
  CHECK(process.tools[0]->calls.empty());
}
