// The rules of connectors and transports. No peer exists during a check.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "bulkhead/cpp/basics.hpp"
#include "bulkhead/cpp/clock.hpp"
#include "bulkhead/cpp/text.hpp"
#include "check/scenarios.hpp"
#include "check/started.hpp"

namespace bulkhead::check {
namespace {

constexpr int close_ms = 4'000;  // how long a lane may take to close; less than a step's limit
constexpr int run_ms = 100;
constexpr std::uint64_t most_blocked_ms = 1'000;
constexpr std::string_view initialize =
    R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{}})";

class Connector : public Started<bh_connector> {
 public:
  Connector(Trial *trial, const Subject &subject, Rule rule)
      : Started(trial, subject, rule, BH_EXT_CONNECTOR) {}

  // Returns true if the lane is open; *out is then the plugin's pointer.
  bool open(bh_lane lane, const std::string &definition, void **out) {
    bh_lane_info info{};
    info.size = sizeof info;
    info.server = bh::str("checked");
    info.definition = bh::str(definition);
    info.connect_timeout_ms = 1'000;
    bh_error error = bh::make_error();
    trial_.step(rule_, "lane_open() with " + definition.substr(0, 60));
    const bh_status status = table().lane_open(self(), lane, &info, out, &error);
    check_error(&trial_, rule_, "lane_open", status, error);
    if (status < 0) problem_ = bh::text(error);
    return status >= 0;
  }
  void close(bh_lane lane, void *handle) {
    trial_.step(rule_, "lane_close()");
    table().lane_close(self(), handle);
    host().base().run_until([&] { return closed(lane) > 0; }, close_ms);
  }
  void send(void *handle, std::uint32_t kind, std::uint64_t exchange, std::string_view text) {
    const bh_str part = bh::str(text);
    bh_lane_message message{};
    message.size = sizeof message;
    message.kind = kind;
    message.exchange = exchange;
    message.part_count = text.empty() ? 0 : 1;
    message.parts = &part;
    bh_error error = bh::make_error();
    trial_.step(rule_, "lane_send()");
    const std::uint64_t before = bh::monotonic_ms();
    const bh_status status = table().lane_send(self(), handle, &message, &error);
    check_error(&trial_, rule_, "lane_send", status, error);
    if (bh::monotonic_ms() - before > most_blocked_ms) {
      trial_.violated(rule_, "lane_send() blocks the reactor thread");
    }
  }
  std::size_t closed(bh_lane lane) {
    const auto &all = host().lanes_closed;
    return static_cast<std::size_t>(std::count(all.begin(), all.end(), lane));
  }
  const std::string &problem() const noexcept { return problem_; }

 private:
  std::string problem_;
};

void check_lanes_close(Trial *trial, const Subject &subject) {
  Connector connector(trial, subject, Rule::lanes_close);
  if (!connector.ready()) return;
  for (bh_lane lane = 1; lane <= 2; ++lane) {
    void *handle = nullptr;
    if (!connector.open(lane, subject.definition, &handle)) {
      trial->not_checked("BH701, BH702 and BH704: no lane can be opened: " + connector.problem() +
                         " (see --definition)");
      return;
    }
    trial->checked(Rule::lanes_close);
    if (lane == 2) connector.host().base().run_for(run_ms);  // the first is closed at once
    const std::size_t down = connector.host().lanes_down.size();
    connector.close(lane, handle);
    connector.host().base().run_for(run_ms);
    if (connector.closed(lane) == 0) {
      trial->violated(Rule::lanes_close, "lane_closed() is never called after lane_close()");
    } else if (connector.closed(lane) > 1) {
      trial->violated(Rule::lanes_close, "lane_closed() is called more than once");
    }
    if (connector.host().lanes_down.size() > down) {
      trial->violated(Rule::lanes_close, "lane_down() is called after lane_close()");
    }
  }
}

void check_lane_messages(Trial *trial, const Subject &subject) {
  Connector connector(trial, subject, Rule::lane_messages);
  void *handle = nullptr;
  if (!connector.ready() || !connector.open(1, subject.definition, &handle)) return;
  trial->checked(Rule::lane_messages);
  connector.send(handle, BH_LANE_REQUEST, 1, initialize);
  trial->step(Rule::lane_messages, "lane_abandon()");
  connector.table().lane_abandon(connector.self(), handle, 1);
  connector.table().lane_abandon(connector.self(), handle, 4'711);
  connector.send(handle, BH_LANE_NOTIFICATION, 0, R"({"jsonrpc":"2.0","method":"x"})");
  connector.send(handle, BH_LANE_RESPONSE, 0, R"({"jsonrpc":"2.0","id":9,"result":{}})");
  const std::string large = R"({"jsonrpc":"2.0","method":")" + std::string(1 << 20, 'x') + "\"}";
  for (int i = 0; i < 8; ++i) connector.send(handle, BH_LANE_NOTIFICATION, 0, large);
  trial->step(Rule::lane_messages, "lane_ready()");
  connector.table().lane_ready(connector.self(), handle, bh::str("2025-11-25"));
  connector.table().lane_ready(connector.self(), handle, bh::str(""));
  connector.host().base().run_for(run_ms);
  connector.close(1, handle);
}

void check_hostile_definitions(Trial *trial, const Subject &subject) {
  Connector connector(trial, subject, Rule::hostile_definitions);
  if (!connector.ready()) return;
  trial->checked(Rule::hostile_definitions);
  bh_lane lane = 0;
  for (const std::string &definition :
       {std::string(), std::string("{}"), std::string("[]"), std::string("null"), std::string("{"),
        std::string(R"({"url":1,"command":[],"args":{},"env":1,"headers":[],"port":"x"})"),
        std::string(R"({"url":"","command":"","cid":-1,"port":1e9})"),
        "{\"x\":\"" + std::string(1 << 20, 'x') + "\"}"}) {
    void *handle = nullptr;
    if (!connector.open(++lane, definition, &handle)) continue;
    connector.host().base().turn(0);
    connector.close(lane, handle);
  }
}

// A lane that is open while the plugin is drained and stopped.
void check_stop_with_lanes(Trial *trial, const Subject &subject) {
  Connector connector(trial, subject, Rule::stop_with_lanes);
  if (!connector.ready()) return;
  const Held before = held(*trial);
  void *first = nullptr, *second = nullptr;
  if (!connector.open(1, subject.definition, &first)) return;  // see check_lanes_close()
  trial->checked(Rule::stop_with_lanes);
  const bool both = connector.open(2, subject.definition, &second);
  connector.send(first, BH_LANE_REQUEST, 1, initialize);
  if (both) connector.send(second, BH_LANE_REQUEST, 1, initialize);
  connector.tested().drain();
  connector.send(first, BH_LANE_NOTIFICATION, 0, R"({"jsonrpc":"2.0","method":"x"})");
  connector.close(1, first);
  if (connector.closed(1) != 1) {
    trial->violated(Rule::stop_with_lanes, "lane_closed() is not called once after drain()");
  }
  connector.tested().stop();
  check_stopped(trial, Rule::stop_with_lanes, &connector.host(), before);
  connector.host().base().forget();
  connector.tested().destroy();
  check_destroyed(trial, Rule::stop_with_lanes, before);
}

// A started transport that can get listening sockets.
class Transport : public Started<bh_transport> {
 public:
  Transport(Trial *trial, const Subject &subject, Rule rule)
      : Started(trial, subject, rule, BH_EXT_TRANSPORT) {
    host().offer_listeners(trial->listeners());
  }
};

void check_listening(Trial *trial, const Subject &subject) {
  Transport transport(trial, subject, Rule::listening);
  if (!transport.ready()) return;
  trial->checked(Rule::listening);
  const Held before = held(*trial);
  bh_error error = bh::make_error();
  trial->step(Rule::listening, "listen()");
  const bh_status status = transport.table().listen(transport.self(), &error);
  check_error(trial, Rule::listening, "listen", status, error);
  trial->step(Rule::listening, "endpoint()");
  if (!bh::is_utf8(bh::view(transport.table().endpoint(transport.self())))) {
    trial->violated(Rule::listening, "endpoint() is not UTF-8");
  }
  transport.host().base().run_for(run_ms);
  trial->step(Rule::listening, "stop_accepting()");
  transport.table().stop_accepting(transport.self());
  transport.host().base().run_for(run_ms);
  if (status < 0) {
    trial->note("BH801: listen fails in the check: " + std::string(bh::text(error)));
  }
  transport.tested().stop();
  check_stopped(trial, Rule::listening, &transport.host(), before);
}

void check_unknown_handles(Trial *trial, const Subject &subject) {
  Transport transport(trial, subject, Rule::unknown_handles);
  if (!transport.ready()) return;
  bh_error error = bh::make_error();
  trial->step(Rule::unknown_handles, "listen()");
  if (transport.table().listen(transport.self(), &error) < 0) {
    trial->note("BH802 was not checked, because listen fails: " + std::string(bh::text(error)));
    return;
  }
  trial->checked(Rule::unknown_handles);
  const bh_str part = bh::str(R"({"jsonrpc":"2.0","id":1,"result":{}})");
  for (const bh_session session : {bh_session{0}, bh_session{4'711}, ~bh_session{0}}) {
    for (const std::uint32_t kind : {BH_OUT_ANSWER, BH_OUT_EVENT}) {
      bh_outgoing message{};
      message.size = sizeof message;
      message.kind = kind;
      message.session = session;
      message.stream = 4'711;
      message.part_count = 1;
      message.parts = &part;
      trial->step(Rule::unknown_handles, "send() in an unknown session");
      const bh_status status = transport.table().send(transport.self(), &message);
      if (status == BH_OK || status == BH_PENDING) {
        trial->violated(Rule::unknown_handles,
                        "send() in an unknown session returns " + std::to_string(status));
      }
    }
    trial->step(Rule::unknown_handles, "session_ended() with an unknown session");
    transport.table().session_ended(transport.self(), session, bh::str("checked"));
  }
  transport.host().base().run_for(run_ms);
}

constexpr std::array scenarios{
    Scenario{BH_EXT_CONNECTOR, check_hostile_definitions},
    Scenario{BH_EXT_CONNECTOR, check_lanes_close},
    Scenario{BH_EXT_CONNECTOR, check_lane_messages},
    Scenario{BH_EXT_CONNECTOR, check_stop_with_lanes, {Rule::lanes_close, Rule::lane_messages}},
    Scenario{BH_EXT_TRANSPORT, check_listening},
    Scenario{BH_EXT_TRANSPORT, check_unknown_handles},
};

}  // namespace

std::span<const Scenario> wire_scenarios() noexcept {
  return scenarios;
}

}  // namespace bulkhead::check
