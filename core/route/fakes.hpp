// Shared by the tests of the request path: a policy, a telemetry plugin, a lane and its host, and a
// tools plugin, all controlled by the test. Fake clients are in client_fakes.hpp.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bulkhead/abi/ext/policy.h"
#include "bulkhead/abi/ext/telemetry.h"
#include "bulkhead/abi/ext/tools.h"
#include "bulkhead/cpp/basics.hpp"
#include "reactor/reactor.hpp"
#include "route/answer_form.hpp"
#include "route/client_fakes.hpp"
#include "route/kept_list.hpp"
#include "route/lane.hpp"
#include "route/lane_host.hpp"
#include "route/upstream.hpp"

namespace bulkhead {

// A message with its scan.
struct Scanned {
  explicit Scanned(std::string message) : text(std::move(message)) {
    mcp::ScanError error;
    INFO(text);
    REQUIRE(mcp::scan(text, &scan, &error));
  }
  Scanned(const Scanned &) = delete;
  Scanned &operator=(const Scanned &) = delete;
  Message get() const { return {text, &scan}; }

  const std::string text;
  mcp::Scan scan;
};

inline std::string joined(const bh_str *parts, std::uint32_t count) {
  std::string out;
  for (std::uint32_t i = 0; i < count; ++i) out.append(bh::view(parts[i]));
  return out;
}

// Runs the event loop until the condition is true, but for at most about 20 seconds. Returns true
// if the condition is true at the end.
inline bool wait_for(Reactor &reactor, const std::function<bool()> &so) {
  for (int i = 0; i < 2'000 && !so(); ++i) reactor.poll(10);
  return so();
}

// Returns a definition with a fixed protocol revision, so that connections begin with initialize.
inline ServerDef server_named(std::string name) {
  ServerDef def;
  def.protocol = ProtocolPin::v2025_11_25;
  def.name = std::move(name);
  return def;
}

struct FakePolicy {
  std::uint32_t needs = 0;
  bh_status decides = BH_OK, observes = BH_OK;
  std::uint32_t verdict = BH_VERDICT_ALLOW;
  std::vector<std::uint32_t> flags{};      // of the requests about calls and events
  std::vector<std::uint64_t> numbers{};    // of the same requests
  bh_status shows = BH_OK;                 // returned for each item of a list
  std::vector<std::string> filtered{};     // the items that the policy was asked about
  std::vector<std::uint64_t> questions{};  // the numbers of those requests
  // Called inside the next request about a call, an event or a result, before it is answered.
  std::function<void()> inside{};

  bh_status answer(bh_status status, std::uint32_t answer, bh_verdict *out) {
    out->verdict = answer;
    out->rule = bh::str("rule");
    call_once(inside);
    return status;
  }
};

inline const bh_policy policy_table = {
    sizeof(bh_policy),
    0,
    [](void *self) { return static_cast<FakePolicy *>(self)->needs; },
    [](void *self, const bh_policy_request *request, bh_verdict *out, bh_error *) {
      auto &policy = *static_cast<FakePolicy *>(self);
      policy.flags.push_back(request->flags);
      policy.numbers.push_back(request->exchange);
      return policy.answer(policy.decides, policy.verdict, out);
    },
    [](void *self, const bh_policy_request *, bh_str, bh_verdict *out, bh_error *) {
      auto &policy = *static_cast<FakePolicy *>(self);
      return policy.answer(policy.observes, BH_VERDICT_ALLOW, out);
    },
    [](void *self, const bh_policy_request *request, bh_error *error) -> bh_status {
      auto &policy = *static_cast<FakePolicy *>(self);
      policy.filtered.emplace_back(bh::view(request->name));
      policy.questions.push_back(request->exchange);
      return policy.shows < 0 ? bh::fail(error, policy.shows, "it cannot decide") : policy.shows;
    },
    nullptr,
};

// A telemetry plugin that accepts all records. The test reports when they are committed.
struct FakeTelemetry {
  std::uint32_t needs = 0;
  std::function<void()> inside{};  // called inside the next query of its needs
};
inline const bh_telemetry telemetry_table = {
    sizeof(bh_telemetry),
    0,
    [](void *, const bh_record *const *, std::uint32_t n) -> std::uint32_t { return n; },
    [](void *self) {
      auto &telemetry = *static_cast<FakeTelemetry *>(self);
      call_once(telemetry.inside);
      return telemetry.needs;
    },
};

// Stands in for the rest of the request path, and stores what lanes report.
struct FakeLaneHost : LaneHost {
  Limits own_limits{};
  std::unique_ptr<Reactor> loop = *Reactor::create();
  ExchangeTable table{};
  std::vector<std::string> events{};  // "changed", "items", "ready", "lost", "ends"
  mutable std::vector<std::string> lines{};
  struct Failure {
    std::uint64_t call;
    std::int32_t error_code;
    std::string text;
  };
  std::vector<Failure> failures{};
  std::vector<Error> refusals{};  // from a tools plugin
  std::vector<bh_call> to_complete{};
  std::map<bh_lane, WireLane *> wires{};  // null while it is being closed
  bh_lane last_wire = 0;
  bool may_send = true;

  const Limits &limits() const noexcept override { return own_limits; }
  Reactor &reactor() noexcept override { return *loop; }
  void log(std::int32_t, std::string_view text) const override { lines.emplace_back(text); }
  std::optional<std::string> without_credentials(std::string_view text) const override {
    return std::string(text);
  }
  bh_lane register_wire(WireLane *lane) override {
    wires[++last_wire] = lane;
    return last_wire;
  }
  void detach_wire(bh_lane lane) override { wires[lane] = nullptr; }
  void forget_wire(bh_lane lane) override { wires.erase(lane); }
  ExchangeTable &exchanges() noexcept override { return table; }
  void arm(Exchange &e, std::uint64_t ms) override { e.timeout_ms = ms; }
  void drop(Exchange &e) override {
    e.lane->detach(e);
    table.close(e);
  }
  void fail_call(Call &call, std::int32_t error_code, std::string_view text,
                 std::uint32_t) override {
    failures.push_back({call.id, error_code, std::string(text)});
    if (call.exchange != nullptr) drop(*std::exchange(call.exchange, nullptr));
  }
  std::vector<std::string> answers{};  // that a lane composed
  void answer_call(Call &call, const Message &answer) override {
    answers.emplace_back(answer.bytes);
    if (call.exchange != nullptr) drop(*std::exchange(call.exchange, nullptr));
  }
  bool may_be_sent(Call &) override { return may_send; }
  std::vector<std::uint64_t> again{};  // calls that must be sent again
  void send_again(Call &call) override {
    again.push_back(call.id);
    if (call.exchange != nullptr) drop(*std::exchange(call.exchange, nullptr));
  }
  void tools_refused(bh_call call, const Error &error) override {
    refusals.push_back(error);
    if (Exchange *e = table.get(call)) drop(*e);
  }
  void expect_completed(bh_call call) override { to_complete.push_back(call); }
  void lane_changed(Lane &) override { events.emplace_back("changed"); }
  void items_changed(Lane &) override { events.emplace_back("items"); }
  void lane_ready(Lane &) override { events.emplace_back("ready"); }
  void lane_lost(Lane &) override { events.emplace_back("lost"); }
  void tools_listed(const Lane &) override {}
  void list_learned(const ListNews &) const override {}
  void lane_ends(Lane &) override { events.emplace_back("ends"); }
  std::size_t count(std::string_view event) const {
    return static_cast<std::size_t>(std::count(events.begin(), events.end(), event));
  }
};

// Sends calls immediately or, if `queues` is set, queues them until turn() is called.
struct FakeLane final : Lane {
  using Lane::Lane;
  bool queues = false;
  bool stateless = false;            // its server may ask for input
  std::vector<mcp::Method> lacks{};  // methods that its server does not have
  std::string_view protocol{};       // the revision of its connection
  bh_lane connection = 0;            // handle of its connection
  bool is_lazy = false;
  std::vector<std::string> members{};  // CallInput::members of each call, if `stateless`
  std::vector<std::uint64_t> queue{};
  std::uint32_t sent = 0, retracts = 0;
  bool asks_input = false;                     // like a tools plugin with BH_TOOLS_ASKS_INPUT
  std::uint32_t retraction = BH_CANCEL_OTHER;  // reason of the last one
  std::vector<std::string> messages{};         // notifications and responses to the server
  std::vector<std::string> quiet{};            // requests on behalf of several clients
  std::function<void()> inside{};              // called at the end of the next submit()

  std::optional<ListHints> hints = ListHints{};
  int refreshes = 0;

  void set_instructions(std::string text) { instructions_ = std::move(text); }
  void start() override {}
  void close() override {}
  std::string_view revision() const noexcept override { return protocol; }
  bh_lane handle() const noexcept override { return connection; }
  bool lazy() const override { return is_lazy; }
  std::optional<ListHints> list_hints(ItemKind, std::uint64_t) const override { return hints; }
  void refresh(ItemKind, std::uint64_t) override { ++refreshes; }
  bool takes(mcp::Method method) const override {
    return std::find(lacks.begin(), lacks.end(), method) == lacks.end();
  }
  void submit(Exchange &e, const CallInHand &hand) override {
    e.call->declared = caps_;
    if (stateless) {
      e.call->answer_form = &stateless_answer_form();
      REQUIRE(keep_for_input(*e.call, hand, caps_));
      members.push_back(e.call->input->members);
    }
    if (asks_input) {
      server_caps_.asks_input = true;
      REQUIRE(keep_for_input(*e.call, hand, e.call->session->caps));
      members.push_back(e.call->input->members);
    }
    if (queues) {
      queue_in_lane(*e.call, hand);
      queue.push_back(e.id);
    } else {
      send_now(e);
    }
    call_once(inside);
  }
  void turn() {
    queues = false;
    for (const std::uint64_t id : std::exchange(queue, {})) {
      Exchange *e = host_.exchanges().get(id);
      if (e == nullptr || !host_.may_be_sent(*e->call)) continue;
      take_from_lane(*e->call);
      send_now(*e);
    }
  }
  void send_now(Exchange &e) {
    e.sent = true;
    ++in_flight;
    ++sent;
  }
  void retract(std::uint64_t, bool, const Retraction &why) override {
    ++retracts;
    retraction = why.reason;
  }
  void abandon(std::uint64_t) override {}
  void send(std::uint32_t, const bh_str *parts, std::uint32_t count) override {
    messages.push_back(joined(parts, count));
  }
  void request_quietly(mcp::Method method, std::string_view params) override {
    quiet.push_back(std::string(mcp::to_string(method)) + " " + std::string(params));
  }
  // These functions set what the server would have reported.
  void set_caps(const ServerCaps &caps) { server_caps_ = caps; }
  void set_state(LaneState state) { state_ = state; }
  void list(ItemKind kind, const std::string &result) {
    ItemList items;
    const auto read = append_page(kind, result, upstream_.def(), host_.limits(), &items);
    REQUIRE(read.has_value());
    items_[static_cast<std::size_t>(kind)] = std::move(items);
    state_ = LaneState::ready;
    settled_ = listed_ = true;
  }
};

// A tools plugin that lists the given tools and keeps its calls until the test completes them.
struct FakeTools {
  std::string tools = "[]";
  bh_status listing = BH_OK;  // result of listing tools; BH_PENDING if the tools follow later
  std::uint32_t features = 0;
  bh_status begins = BH_PENDING;
  std::vector<std::string> calls{};  // "method name arguments"
  std::vector<bh_call> ids{}, cancelled{};
  struct Info {
    std::uint32_t flags;
    std::uint64_t session;
    std::string principal, traceparent, input_responses, request_state;
  };
  std::vector<Info> infos{};                                     // of each call
  std::vector<std::pair<std::uint32_t, std::string>> reasons{};  // of each cancellation
  std::vector<std::pair<std::uint64_t, std::string>> lists{};    // the client of each list
  std::function<void()> inside{};  // called inside the next call_begin()
  std::string templates{};         // the list of resource templates; empty if there is no such list
};
inline const bh_tools tools_table = {
    sizeof(bh_tools),
    0,
    [](void *self, const bh_list_info *info, bh_buf *out, bh_error *error) -> bh_status {
      FakeTools &tools = *static_cast<FakeTools *>(self);
      const std::uint32_t kind = info->kind;
      tools.lists.push_back({info->session, std::string(bh::view(info->principal))});
      if (kind == BH_LIST_TEMPLATES && !tools.templates.empty()) {
        *out = bh::buf(std::string(tools.templates));
        return BH_OK;
      }
      if (kind != BH_LIST_TOOLS) return BH_E_UNSUPPORTED;
      if (tools.listing == BH_PENDING) return BH_PENDING;
      if (tools.listing != BH_OK) return bh::fail(error, tools.listing, "the folder has gone");
      *out = bh::buf(std::string(tools.tools));
      return BH_OK;
    },
    [](void *self, bh_call call, const bh_call_info *info, bh_error *error) -> bh_status {
      FakeTools &tools = *static_cast<FakeTools *>(self);
      tools.calls.push_back(std::string(bh::view(info->method)) + " " +
                            std::string(bh::view(info->name)) + " " +
                            std::string(bh::view(info->arguments)));
      tools.ids.push_back(call);
      tools.infos.push_back({info->flags, info->session, std::string(bh::view(info->principal)),
                             std::string(bh::view(info->traceparent)),
                             std::string(bh::view(info->input_responses)),
                             std::string(bh::view(info->request_state))});
      call_once(tools.inside);
      if (tools.begins >= BH_OK) return tools.begins;
      return bh::fail(error, tools.begins, "it is not done");
    },
    [](void *self, bh_call call, const bh_cancel *cancel) {
      FakeTools &tools = *static_cast<FakeTools *>(self);
      tools.cancelled.push_back(call);
      tools.reasons.emplace_back(cancel->reason, bh::view(cancel->text));
    },
    [](void *self) -> std::uint32_t { return static_cast<FakeTools *>(self)->features; },
};

}  // namespace bulkhead
