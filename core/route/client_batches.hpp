// JSON-RPC batches of clients: the answers to their requests, collected until the last is there.
// Owner: ClientAnswers. Thread: [io].
#pragma once

#include <cstddef>
#include <cstdint>
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

  // A batch whose answer goes to `reply`. It is open until end_one() was called once for it and
  // once for each message that add() has counted.
  std::uint64_t open(const ReplyTo &reply);
  // One whose answers are discarded: for requests that the gateway makes on a client's behalf.
  // It has one message.
  std::uint64_t open_silent(const ReplyTo &reply);
  // One more message. False: the batch has gone, with its session.
  bool add(std::uint64_t batch);
  // One of its messages is a request: an answer is awaited, even if all of them are cancelled.
  void expect_answer(std::uint64_t batch);
  // The answer to one of its requests. What waits here waits for its client, like what a transport
  // keeps for one that reads slowly, and has the same bound (limits.write_queue_bytes for each
  // session): beyond it an error stands for the answer.
  void put(std::uint64_t batch, const bh_str *parts, std::uint32_t count);

  struct Complete {
    ReplyTo reply;
    std::string body;  // an array; empty: there is no answer in it
    bool expects_answer = false;
  };
  // One message has been dealt with. Something: it was the last one, and the batch is gone.
  std::optional<Complete> end_one(std::uint64_t batch);
  void forget_session(std::uint64_t session);

 private:
  struct Batch {
    ReplyTo reply;
    std::uint32_t open = 0;
    std::string body;
    std::size_t bytes = 0;  // of answers in it
    bool expects_answer = false;
    bool silent = false;
  };
  std::string bounded(const Session &session, std::string answer) const;

  Sessions &sessions_;
  const Limits &limits_;
  Slots<Batch> batches_;
};

}  // namespace bulkhead
