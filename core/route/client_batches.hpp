// Collects the responses to the requests of a client's JSON-RPC batch until the batch is complete.
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

  // Opens a batch whose combined response is sent to `reply`. The batch is complete when end_one()
  // has been called once for the batch itself and once for each message counted with add().
  std::uint64_t open(const ReplyTo &reply);
  // Opens a batch of one message whose response is discarded, for requests that the gateway sends
  // on behalf of a client. `on_end` is called when the request is answered or cancelled, but not if
  // the session ends first. `on_end` must only record the event.
  std::uint64_t open_silent(const ReplyTo &reply, std::function<void()> on_end = {});
  // Adds one to the number of messages in the batch. Returns false if the batch was discarded
  // because its session has ended.
  bool add(std::uint64_t batch);
  // Called if a message of the batch has received or will receive a response. The transport then
  // waits for the batch's response, even if all requests are cancelled.
  void expect_answer(std::uint64_t batch);
  // Adds the response to one request. If the collected responses of the session would exceed
  // limits.write_queue_bytes (the limit of a transport's write queue), an error is stored instead,
  // unless the error would be larger than the response.
  void put(std::uint64_t batch, const bh_str *parts, std::uint32_t count);

  struct Complete {
    ReplyTo reply;
    std::string body;  // JSON array; empty if there are no responses
    bool expects_answer = false;
  };
  // Called when a message of the batch has been handled. If this was the last message, removes the
  // batch and returns it.
  std::optional<Complete> end_one(std::uint64_t batch);
  // Discards the session's incomplete batches. Called before the session ends.
  void forget_session(Session &session);

 private:
  struct Batch {
    ReplyTo reply;
    std::uint32_t open = 0;
    std::string body;
    std::size_t bytes = 0;  // size of the collected responses
    bool expects_answer = false;
    bool silent = false;
    std::function<void()> on_end = {};
  };
  std::uint64_t insert(Batch batch);
  std::string bounded(const Session &session, std::string answer) const;

  Sessions &sessions_;
  const Limits &limits_;
  Slots<Batch> batches_;
};

}  // namespace bulkhead
