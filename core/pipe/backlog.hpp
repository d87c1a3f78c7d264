// Messages that are not finished: requests of the client without an answer, messages that wait for
// a connection, and requests of the endpoint without an answer. Owner: Route. Limits: RouteLimits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "pipe/line.hpp"
#include "pipe/route_limits.hpp"

namespace bulkhead::pipe {

class Backlog {
 public:
  struct Pending {
    std::string id, method;  // tokens
  };
  struct Waiting {
    std::uint32_t kind;
    std::uint64_t exchange;
    std::string text;
  };
  explicit Backlog(const RouteLimits &limits) : limits_(limits) {}

  // ---- requests of the client, those that wait for a connection included ----
  std::uint64_t next_exchange() noexcept { return next_exchange_++; }
  // The exchange of the request; 0: too many requests are pending.
  std::uint64_t add(const Line &line);
  const Pending *find(std::uint64_t exchange) const;
  void forget(std::uint64_t exchange);
  // The requests that were sent, oldest first.
  std::vector<std::uint64_t> sent() const;
  std::size_t pending() const noexcept { return pending_.size(); }
  std::size_t pending_bytes() const noexcept { return pending_bytes_; }

  // ---- messages that wait for a connection, in the order in which they came ----
  // False: max_waiting_bytes wait.
  bool keep(std::uint32_t kind, std::uint64_t exchange, std::string_view text);
  Waiting take_first();
  // The message that was kept last was the first one before: it could not be sent.
  void move_last_to_front();
  std::deque<Waiting> take_waiting();
  std::size_t waiting() const noexcept { return waiting_.size(); }
  std::size_t waiting_bytes() const noexcept { return waiting_bytes_; }

  // ---- requests of the endpoint on the present connection ----
  // Beyond max_questions the oldest is forgotten.
  void note_question(std::string_view text);
  // False: the endpoint has not asked this, or was answered.
  bool take_question(std::string_view id);
  void forget_questions() noexcept { questions_.clear(); }

  // No request is pending and no message waits.
  bool idle() const noexcept { return pending_.empty() && waiting_.empty(); }
  // The client has gone.
  void clear();

 private:
  const RouteLimits &limits_;
  std::uint64_t next_exchange_ = 1;
  std::unordered_map<std::uint64_t, Pending> pending_;  // by exchange
  std::deque<Waiting> waiting_;
  std::deque<std::string> questions_;  // ids
  std::size_t pending_bytes_ = 0, waiting_bytes_ = 0;
};

}  // namespace bulkhead::pipe
