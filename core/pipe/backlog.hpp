// Unfinished messages: unanswered client requests, messages that wait for a connection, and
// unanswered endpoint requests. Owner: Route. Limited by RouteLimits.
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

  // ---- requests of the client, including queued requests ----
  std::uint64_t next_exchange() noexcept { return next_exchange_++; }
  // Adds a request and returns its exchange, or 0 if too many requests are pending.
  std::uint64_t add(const Line &line);
  const Pending *find(std::uint64_t exchange) const;
  void forget(std::uint64_t exchange);
  // Returns the requests that have been sent, oldest first.
  std::vector<std::uint64_t> sent() const;
  std::size_t pending() const noexcept { return pending_.size(); }
  std::size_t pending_bytes() const noexcept { return pending_bytes_; }

  // ---- messages that wait for a connection, in order of arrival ----
  // Returns false if the message would exceed max_waiting_bytes.
  bool keep(std::uint32_t kind, std::uint64_t exchange, std::string_view text);
  Waiting take_first();
  // Moves the most recently queued message back to the front because it could not be sent.
  void move_last_to_front();
  std::deque<Waiting> take_waiting();
  std::size_t waiting() const noexcept { return waiting_.size(); }
  std::size_t waiting_bytes() const noexcept { return waiting_bytes_; }

  // ---- requests of the endpoint on the current connection ----
  // Drops the oldest request if there are already max_questions.
  void note_question(std::string_view text);
  // Returns false if the endpoint did not send this request or it has already been answered.
  bool take_question(std::string_view id);
  void forget_questions() noexcept { questions_.clear(); }

  // Returns true if no requests are pending and no messages are queued.
  bool idle() const noexcept { return pending_.empty() && waiting_.empty(); }
  // Called when the client has disconnected.
  void clear();

 private:
  const RouteLimits &limits_;
  std::uint64_t next_exchange_ = 1;
  std::unordered_map<std::uint64_t, Pending> pending_;  // keyed by exchange
  std::deque<Waiting> waiting_;
  std::deque<std::string> questions_;  // ids
  std::size_t pending_bytes_ = 0, waiting_bytes_ = 0;
};

}  // namespace bulkhead::pipe
