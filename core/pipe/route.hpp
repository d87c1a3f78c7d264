// route = "pipe": joins the one client session of a transport to one lane of a connector. It knows
// which lines await an answer and which answer is whose, and nothing else of MCP's methods but the
// handshake, which it repeats on a new connection.
//
// A request that was sent when its connection is lost is answered with error -32001 and never sent
// again: it may have run. One that was not sent waits, in the first outage_wait_ms of an outage
// (and until the first connection stands); after that requests are answered at once.
//
// Either side waits for the other. While the client does not take what it gets, the lane is held,
// so that the endpoint finds its socket full. While the endpoint does not take what it is sent, or
// as much as the limits allow has no answer or no connection, the client is held.
//
// Owner: the Host. Thread: the reactor's. The functions of Ends may call back from inside.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.hpp"
#include "bulkhead/abi/ext/connector.h"
#include "pipe/line.hpp"
#include "pipe/log_budget.hpp"
#include "reactor/reactor.hpp"

namespace bulkhead::pipe {

// What the route needs of the plugins at its two ends, and of the program.
class Ends {
 public:
  virtual void to_client(std::string_view message) = 0;
  // At most one lane is open at a time, but the one before may still be ending.
  virtual Result<void> open_lane(bh_lane lane) = 0;
  virtual Result<void> send(std::uint32_t kind, std::uint64_t exchange, std::string_view text) = 0;
  virtual void finish_lane() = 0;  // half-close
  virtual void close_lane() = 0;
  // Reads nothing more from the open lane, or the client, until told otherwise. The present message
  // of the client is then its last one.
  virtual void hold_lane(bool hold) = 0;
  virtual void hold_client(bool hold) = 0;
  virtual void log(std::int32_t level, std::string_view text) = 0;
  // Everything is said and answered. failure: empty, or why the program could not do its work.
  virtual void done(std::string_view failure) = 0;

 protected:
  ~Ends() = default;
};

// Milliseconds, messages and bytes; docs/limits.md. The client is held when there are max_pending
// requests, or half of max_pending_bytes or max_waiting_bytes, and until there is half of that; so
// one message finds room behind these, unless it alone is too much. That one is refused.
struct RouteLimits {
  std::uint64_t first_retry_ms = 50, max_retry_ms = 500;
  std::uint64_t start_ms = 30'000;           // without any connection the program gives up
  std::uint64_t outage_wait_ms = 5'000;      // what an unsent request waits for a lost connection
  std::uint64_t steady_ms = 1'000;           // a connection that stood so long is replaced at once
  std::uint64_t linger_ms = 300;             // after the last answer, until the peer ends its half
  std::uint64_t drain_ms = 330'000;          // for answers after the client's input has ended
  std::uint64_t reminder_ms = 30'000;        // between log lines of one outage
  std::size_t max_pending = 4'096;           // requests without an answer
  std::size_t max_pending_bytes = 1u << 20;  // of their ids and methods
  std::size_t max_waiting_bytes = 4u << 20;  // of messages that wait for a connection
  std::size_t max_own_bytes = 1u << 20;      // of answers made here that the client does not take
  std::size_t max_handshake_bytes = 64u << 10;
  std::size_t max_questions = 256;    // of the endpoint, without an answer; the oldest goes
  std::size_t max_question_id = 256;  // bytes
};

class Route {
 public:
  // endpoint: the other side's name for texts.
  Route(Reactor &reactor, Ends &ends, std::string endpoint, RouteLimits limits = {});
  ~Route();
  Route(const Route &) = delete;
  Route &operator=(const Route &) = delete;

  void start();

  // From the client. True: exactly one answer comes (or came already).
  bool from_client(std::string_view text);
  void input_ended();
  void client_gone();
  // Something waits that it does not take; or it has taken everything.
  void client_full(bool full);

  // From the connector; those of another lane than the present one are ignored.
  void connected(bh_lane lane);
  void message(bh_lane lane, std::uint64_t exchange, std::string_view text);
  void exchange_failed(bh_lane lane, std::uint64_t exchange, const Error &error);
  void lane_down(bh_lane lane, const Error &error);
  void lane_full(bh_lane lane, bool full);  // likewise

 private:
  enum class Wire : std::uint8_t { none, connecting, up };
  struct Pending {
    std::string id, method;  // tokens
  };
  struct Waiting {
    std::uint32_t kind;
    std::uint64_t exchange;
    std::string text;
  };
  struct Handshake {
    std::uint64_t exchange = 0;  // of the client's own initialize, until its answer
    std::string sent;            // that request
    std::string initialize;      // one that was answered with a result
    bool initialized = false;    // the client has confirmed it
    std::uint64_t repeated = 0;  // our repetition, until its answer
  };
  // Reached at `bound`, and until no more than half of it is left.
  class Mark {
   public:
    bool reached(std::size_t n, std::size_t bound) noexcept {
      full_ = n >= (full_ ? (bound + 1) / 2 : bound);
      return full_;
    }

   private:
    bool full_ = false;
  };

  bool take_line(std::string_view text);
  bool request(const Line &line, std::string_view text);
  void pass(std::uint32_t kind, std::uint64_t exchange, std::string_view text);
  void keep(std::uint32_t kind, std::uint64_t exchange, std::string_view text);
  void send_now(std::uint32_t kind, std::uint64_t exchange, std::string_view text);
  void send_failed(const Error &error, std::uint32_t kind, std::uint64_t exchange,
                   std::string_view text);
  void note_handshake(std::uint32_t kind, std::uint64_t exchange, std::string_view text);
  bool take_handshake_answer(std::uint64_t exchange, std::string_view text);
  void repeat_handshake();
  void note_question(std::string_view text);
  bool take_question(std::string_view id);
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
  void forget(std::uint64_t exchange);
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
  bh_lane lane_ = 0;  // of wire_, or the last one
  std::uint64_t next_exchange_ = 1;
  std::unordered_map<std::uint64_t, Pending> pending_;  // by exchange; also those that wait
  std::deque<Waiting> waiting_;
  std::size_t pending_bytes_ = 0, waiting_bytes_ = 0, own_bytes_ = 0;
  Handshake handshake_;
  std::deque<std::string> questions_;  // ids of the endpoint's requests on this connection

  std::uint64_t started_ns_ = 0, connected_ns_ = 0, lost_ns_ = 0, reminded_ns_ = 0;
  std::uint64_t retry_ms_ = 0;
  bool stood_ = false;        // a connection has stood
  bool long_outage_ = false;  // requests do not wait any more
  bool client_full_ = false, lane_full_ = false;
  bool client_held_ = false;
  Mark pending_mark_, pending_bytes_mark_, waiting_mark_, own_mark_;
  bool input_ended_ = false, finished_ = false, ended_ = false;
  std::uint64_t retry_timer_ = 0, outage_timer_ = 0, end_timer_ = 0;
  LogBudget budget_;
};

}  // namespace bulkhead::pipe
