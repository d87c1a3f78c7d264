// Implements route = "pipe": connects a transport's only client session to one lane of a connector,
// and matches responses to requests. It interprets only the MCP requests that must be repeated on a
// new connection: the handshake, and the requests that set session state.
//
// If the connection is lost, the client receives error -32001 for each request that was sent but
// not answered. These requests are never retried, because they may have been executed. Unsent
// requests are queued until the first connection is open. After a later loss, they are queued for
// up to outage_wait_ms; from then on, requests receive an error immediately.
//
// Backpressure works in both directions. If the client does not read, the lane is paused, so that
// the endpoint's socket fills up. If the endpoint does not read, or too many messages are
// unanswered or unsent, the client is paused.
//
// Owned by PipeHost. All functions must be called on the reactor thread. The functions of Ends may
// call the route.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "bulkhead/abi/ext/connector.h"
#include "pipe/attempts.hpp"
#include "pipe/backlog.hpp"
#include "pipe/client_hold.hpp"
#include "pipe/client_state.hpp"
#include "pipe/ends.hpp"
#include "pipe/handshake.hpp"
#include "pipe/line.hpp"
#include "pipe/log_budget.hpp"
#include "pipe/route_limits.hpp"
#include "reactor/reactor.hpp"

namespace bulkhead::pipe {

class Route {
 public:
  // `endpoint` is the endpoint's name in log messages.
  Route(Reactor &reactor, Ends &ends, std::string endpoint, RouteLimits limits = {});
  ~Route();
  Route(const Route &) = delete;
  Route &operator=(const Route &) = delete;

  void start();

  // Handles a message from the client. Returns true if the client has received or will receive
  // exactly one response to it.
  bool from_client(std::string_view text);
  void input_ended();
  void client_gone();
  // `full` is true if the client has unread output, and false if it has read everything.
  void client_full(bool full);

  // Events from the connector. Events for any lane other than the current one are ignored.
  void connected(bh_lane lane);
  void message(bh_lane lane, std::uint64_t exchange, std::string_view text);
  void exchange_failed(bh_lane lane, std::uint64_t exchange, const Error &error);
  void lane_down(bh_lane lane, const Error &error);
  void lane_full(bh_lane lane, bool full);  // `full` is true if the lane has unsent output

 private:
  enum class Wire : std::uint8_t { none, connecting, up };

  bool take_line(std::string_view text);
  bool request(const Line &line, std::string_view text);
  void pass(std::uint32_t kind, std::uint64_t exchange, std::string_view text);
  void keep(std::uint32_t kind, std::uint64_t exchange, std::string_view text);
  void send_now(std::uint32_t kind, std::uint64_t exchange, std::string_view text);
  void send_failed(const Error &error, std::uint32_t kind, std::uint64_t exchange,
                   std::string_view text);
  void send_waiting();

  void attempt();
  void attempt_failed(const Error &error);
  void attempt_later(std::uint64_t delay_ms);
  void lost(const Error &error);
  void give_up(const Error &error);
  void outage_is_long();
  void drain_is_over();

  void fail(std::uint64_t exchange, std::string_view reason);
  std::size_t fail_pending(std::string_view reason);
  void fail_waiting(std::string_view reason);
  void answer(std::string_view text);
  void own_answers_taken();
  void hold_as_needed();
  void check_end();
  void end(std::string_view failure);
  void cancel(std::uint64_t *timer);
  void log(std::int32_t level, std::string_view text);

  Reactor &reactor_;
  Ends &ends_;
  const std::string endpoint_;
  const RouteLimits limits_;

  Wire wire_ = Wire::none;
  bh_lane lane_ = 0;  // the current or the last lane
  Backlog backlog_{limits_};
  Handshake handshake_{limits_};
  ClientState state_{limits_};
  Attempts attempts_{limits_};
  ClientHold hold_{limits_};

  bool long_outage_ = false;  // the outage has lasted outage_wait_ms, so requests are not queued
  bool client_full_ = false;
  bool input_ended_ = false, finished_ = false, ended_ = false;
  std::uint64_t retry_timer_ = 0, outage_timer_ = 0, end_timer_ = 0;
  LogBudget budget_;
};

}  // namespace bulkhead::pipe
