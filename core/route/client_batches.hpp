// Collects the answers to the requests of a client's JSON-RPC batch until the batch is complete.
//
// Owner: ClientAnswers. Runs on the reactor thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/slots.hpp"
#include "bulkhead/abi/core.h"
#include "profile/profile.hpp"
#include "route/reply_to.hpp"
#include "route/sessions.hpp"

namespace bulkhead {

class ClientBatches {
 public:
  ClientBatches(Sessions &sessions, const Limits &limits) : sessions_(sessions), limits_(limits) {}

  // Opens a batch whose answer is sent to `reply`. The batch is complete when end_one() has been
  // called once for the batch itself and once for each message counted by add().
  std::uint64_t open(const ReplyTo &reply);
  // Opens a batch of one message whose answer is discarded. Used for requests that the gateway
  // makes on behalf of a client. `on_end` is called when the request is answered or cancelled,
  // unless its session has ended; it must only note this.
  std::uint64_t open_silent(const ReplyTo &reply, std::function<void()> on_end = {});
  // Counts a message. Returns false if the batch has ended with its session.
  bool add(std::uint64_t batch);
  // Called if a message of the batch is a request. An answer is then expected, even if all requests
  // are cancelled.
  void expect_answer(std::uint64_t batch);
  // Adds the answer to a request. The collected answers of a session are limited to
  // limits.write_queue_bytes, like the write queue of a transport. Above this limit, an error
  // replaces the answer.
  void put(std::uint64_t batch, const bh_str *parts, std::uint32_t count);

  struct Complete {
    ReplyTo reply;
    std::string body;  // an array; empty if there are no answers
    bool expects_answer = false;
  };
  // Called when a message was handled. If it was the last one, ends and returns the batch.
  std::optional<Complete> end_one(std::uint64_t batch);
  void forget_session(std::uint64_t session);

 private:
  struct Batch {
    ReplyTo reply;
    std::uint32_t open = 0;
    std::string body;
    std::size_t bytes = 0;  // of its answers
    bool expects_answer = false;
    bool silent = false;
    std::function<void()> on_end = {};
  };
  std::string bounded(const Session &session, std::string answer) const;

  Sessions &sessions_;
  const Limits &limits_;
  Slots<Batch> batches_;
};

}  // namespace bulkhead
