// What goes to clients: answers, exactly one for each request; notifications and requests.
// Owner: the Router. Thread: [io].
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
#include "route/sessions.hpp"

namespace bulkhead {

// A request of a client while it is handled: until it is answered, or a call or a list waits with
// it. Borrows the message.
struct Incoming {
  ReplyTo reply;
  Message message;
  std::uint64_t start_ns = 0;
  bool recorded = false;  // or somebody else will record it

  std::string_view id() const noexcept { return message.id(); }
};

class ClientAnswers {
 public:
  // on_sent: an answer has left; the gateway may be idle now.
  ClientAnswers(Sessions &sessions, Recorder &recorder, Reactor &reactor, const Limits &limits,
                RouterCounters &counters, std::function<void()> on_sent);

  // Is notified of each answer, since a process that has answered is sound. May be null.
  void use_ledger(Ledger *ledger) noexcept { ledger_ = ledger; }

  // Called before the answer to a sessionless message is sent, since its session ends with it.
  void on_sessionless_answer(std::function<void(Session &)> f) {
    on_sessionless_answer_ = std::move(f);
  }

  // Hands a message over to the session's transport now. Until it returns, a client may do anything
  // but end its session; see sending().
  void send(const ReplyTo &reply, std::uint32_t kind, const bh_str *parts, std::uint32_t count,
            std::uint32_t http_status = 0);
  void event(const ReplyTo &reply, std::string_view text);
  // Inside a transport's send().
  bool sending() const noexcept { return sending_ != 0; }

  // ---- answers: they wait for their batch, and for their records where those are committed ----
  // may_have_run: a server may have done something for the request.
  void answer(const ReplyTo &reply, const bh_str *parts, std::uint32_t count,
              std::uint32_t http_status = 0, bool may_have_run = true);
  void result(const ReplyTo &reply, std::string_view id_token, std::string_view result);
  void error(const ReplyTo &reply, std::string_view id_token, std::int32_t error_code,
             std::string_view text, std::uint32_t http_status = 0, std::string_view data = {},
             bool may_have_run = false);
  // The same to a request that is being handled, with its record.
  void result(Incoming &request, std::string_view result);
  void error(Incoming &request, std::int32_t error_code, std::string_view text,
             std::uint32_t http_status = 0, std::string_view data = {});
  // An error that waits for no record: it says itself that there is none, or there never will be.
  void unrecorded_error(const ReplyTo &reply, std::string_view id_token, std::int32_t error_code,
                        std::string_view text, std::uint32_t http_status = 0);
  // A cancelled request gets no answer, but the place that waits for one must be told.
  void none(const ReplyTo &reply);
  // The record of a request that ends here, if it has none yet.
  void record(Incoming &request, std::uint32_t outcome, std::string_view error,
              std::string_view response);

  // ---- batches ----
  ClientBatches &batches() noexcept { return batches_; }
  // One message of the batch has been dealt with without an answer.
  void batch_message_done(std::uint64_t batch);

  // ---- answers whose records are not committed yet ----
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
