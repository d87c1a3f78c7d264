// Stores unfinished messages: unanswered requests from the client, messages that wait for a
// connection, and unanswered requests from the endpoint. Limited by RouteLimits. Owned by Route.
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

  // ---- the client's unanswered requests, including unsent requests ----
  std::uint64_t next_exchange() noexcept { return next_exchange_++; }
  // Adds a request and returns its exchange, or 0 if max_pending or max_pending_bytes would be
  // exceeded.
  std::uint64_t add(const Line &line);
  const Pending *find(std::uint64_t exchange) const;
  void forget(std::uint64_t exchange);
  // Returns the exchanges of the requests that have been sent, oldest first.
  std::vector<std::uint64_t> sent() const;
  std::size_t pending() const noexcept { return pending_.size(); }
  std::size_t pending_bytes() const noexcept { return pending_bytes_; }

  // ---- messages that wait for a connection, in order of arrival ----
  // Returns false if the message would exceed max_waiting_bytes.
  bool keep(std::uint32_t kind, std::uint64_t exchange, std::string_view text);
  Waiting take_first();
  // Moves the last queued message to the front of the queue. Used if a message was taken from the
  // front, could not be sent, and was queued again.
  void move_last_to_front();
  std::deque<Waiting> take_waiting();
  std::size_t waiting() const noexcept { return waiting_.size(); }
  std::size_t waiting_bytes() const noexcept { return waiting_bytes_; }

  // ---- the endpoint's unanswered requests on the current connection ----
  // If the message is a request, stores its ID. If there are already max_questions, drops the
  // oldest. An ID longer than max_question_id is not stored.
  void note_question(std::string_view text);
  // Removes the ID. Returns false if it is not stored: the endpoint did not send this request, it
  // has already been answered, or its ID was dropped.
  bool take_question(std::string_view id);
  void forget_questions() noexcept { questions_.clear(); }

  // Returns true if there are no unanswered requests from the client and no queued messages.
  bool idle() const noexcept { return pending_.empty() && waiting_.empty(); }
  // Called after the client has disconnected.
  void clear();

 private:
  const RouteLimits &limits_;
  std::uint64_t next_exchange_ = 1;
  std::unordered_map<std::uint64_t, Pending> pending_;  // keyed by exchange
  std::deque<Waiting> waiting_;
  std::deque<std::string> questions_;  // IDs
  std::size_t pending_bytes_ = 0, waiting_bytes_ = 0;
};

}  // namespace bulkhead::pipe
