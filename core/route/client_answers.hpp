// Sends messages to clients: exactly one response to each request, and also notifications and
// requests.
//
// Owner: the Router. Runs on the reactor thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

#include "bulkhead/abi/ext/transport.h"
#include "profile/profile.hpp"
#include "reactor/reactor.hpp"
#include "route/client_batches.hpp"
#include "route/counters.hpp"
#include "route/held_answers.hpp"
#include "route/ledger.hpp"
#include "route/message.hpp"
#include "route/recorder.hpp"
#include "route/repeated_request.hpp"
#include "route/sessions.hpp"

namespace bulkhead {

// A client's request while it is being handled, that is, until it is answered, is parked in a call,
// or waits for a list. Borrows the message.
struct Incoming {
  ReplyTo reply;
  Message message;
  std::uint64_t start_ns = 0;
  bool recorded = false;  // recorded, or another object will record it
  // The headers that must match the body. Null if the transport has no headers, if the revision
  // does not require them, or if the request has waited.
  const WireHeaders *headers = nullptr;
  // The server's state that the client sent with a repeated request. Null if the request is not
  // repeated or has no such state.
  const RequestState *state = nullptr;

  std::string_view id() const noexcept { return message.id(); }
};

class ClientAnswers {
 public:
  // `on_sent` is called when a response has been sent, because the gateway may now be idle.
  ClientAnswers(Sessions &sessions, Recorder &recorder, Reactor &reactor, const Limits &limits,
                RouterCounters &counters, std::function<void()> on_sent);

  // Sets the ledger, or removes it if `ledger` is null. The ledger is notified of each response,
  // because a response proves that the process is working.
  void use_ledger(Ledger *ledger) noexcept { ledger_ = ledger; }

  // Sets the function that is called before the response to a sessionless message is sent. The
  // message's session ends with this response.
  void on_sessionless_answer(std::function<void(Session &)> f) {
    on_sessionless_answer_ = std::move(f);
  }

  // Passes a message to the session's transport. Drops the message if the session has ended, or if
  // the session accepts only responses and the message is not a response. The client may call back
  // while this function runs, but its session does not end before this function returns; see
  // sending().
  void send(const ReplyTo &reply, std::uint32_t kind, const bh_str *parts, std::uint32_t count,
            std::uint32_t http_status = 0);
  void event(const ReplyTo &reply, std::string_view text);
  // Returns true while a transport's send() is running.
  bool sending() const noexcept { return sending_ != 0; }

  // ---- answers ----
  // Answers are held until their batch is complete and, if a plugin commits records, until their
  // records are committed. may_have_run is true if a server may have executed the request.
  void answer(const ReplyTo &reply, const bh_str *parts, std::uint32_t count,
              std::uint32_t http_status = 0, bool may_have_run = true);
  void result(const ReplyTo &reply, std::string_view id_token, std::string_view result,
              bool may_have_run = false);
  // If http_status is 0 and the reply address has a form, the form determines the error code and
  // the HTTP status.
  void error(const ReplyTo &reply, std::string_view id_token, std::int32_t error_code,
             std::string_view text, std::uint32_t http_status = 0, std::string_view data = {},
             bool may_have_run = false);
  // Like the functions above, but for a request that is still being handled. They also record the
  // request, unless it has already been recorded.
  void result(Incoming &request, std::string_view result);
  void error(Incoming &request, std::int32_t error_code, std::string_view text,
             std::uint32_t http_status = 0, std::string_view data = {});
  // Sends an error without waiting for records, unless it belongs to a batch. Used for errors that
  // report a missing record or that have no record.
  void unrecorded_error(const ReplyTo &reply, std::string_view id_token, std::int32_t error_code,
                        std::string_view text, std::uint32_t http_status = 0);
  // Releases the slot of a cancelled request in the transport, without sending a response.
  void none(const ReplyTo &reply);
  // Records a request whose handling is finished, unless it has already been recorded.
  void record(Incoming &request, std::uint32_t outcome, std::string_view error,
              std::string_view response);

  // ---- batches ----
  ClientBatches &batches() noexcept { return batches_; }
  // Called when a message of the batch was handled and needs no response, and once after all
  // messages of the batch have been read. Sends the batch's response if the batch is complete.
  void batch_message_done(std::uint64_t batch);

  // ---- answers whose records have not been committed yet ----
  void records_committed();
  bool any_held() const noexcept { return !held_.empty(); }
  bool held_full() const noexcept { return held_.full(); }

 private:
  void put_in_batch(std::uint64_t batch, const bh_str *parts, std::uint32_t count);
  void released(const ReplyTo &reply, const bh_str *parts, std::uint32_t count,
                std::uint32_t http_status, bool withheld);

  Sessions &sessions_;
  Recorder &recorder_;
  Reactor &reactor_;
  RouterCounters &counters_;
  const std::function<void()> on_sent_;
  std::function<void(Session &)> on_sessionless_answer_;
  ClientBatches batches_;
  HeldAnswers held_;
  Ledger *ledger_ = nullptr;
  std::uint32_t sending_ = 0;
};

}  // namespace bulkhead
