#include "pipe/route.hpp"

#include <utility>

namespace bulkhead::pipe {

Route::Route(Reactor &reactor, Ends &ends, std::string endpoint, RouteLimits limits)
    : reactor_(reactor), ends_(ends), endpoint_(std::move(endpoint)), limits_(limits) {}

Route::~Route() {
  reactor_.forget(this);
}

void Route::cancel(std::uint64_t *timer) {
  if (*timer != 0) reactor_.timer_cancel(*timer);
  *timer = 0;
}

void Route::log(std::int32_t level, std::string_view text) {
  std::uint32_t left_out = 0;
  if (!budget_.take(reactor_.now_ns(), &left_out)) return;
  std::string line(text);
  if (left_out > 0) line += " (" + std::to_string(left_out) + " earlier lines omitted)";
  ends_.log(level, line);
}

void Route::start() {
  attempts_.start(reactor_.now_ns());
  attempt();
}

// ---- messages from the client ----------------------------------------------------------------

bool Route::from_client(std::string_view text) {
  if (ended_ || input_ended_) return false;
  const bool answered = take_line(text);
  hold_as_needed();
  return answered;
}

bool Route::take_line(std::string_view text) {
  const Line line = classify(text);
  if (line.kind == LineKind::request) return request(line, text);
  const bool response = line.kind == LineKind::response;
  // A response to a request on a previous connection must not be forwarded, because the endpoint
  // may have reused the ID.
  if (response && (wire_ != Wire::up || !backlog_.take_question(line.id))) return false;
  pass(response ? BH_LANE_RESPONSE : BH_LANE_NOTIFICATION, 0, text);
  return false;
}

bool Route::request(const Line &line, std::string_view text) {
  const std::uint64_t exchange = backlog_.add(line);
  if (exchange != 0) {
    pass(BH_LANE_REQUEST, exchange, text);
  } else {
    const std::string id = line.id.size() <= limits_.max_pending_bytes ? std::string(line.id) : "";
    answer(
        lost_answer(id, method_name(line.method) + ": not sent: too many requests are in flight"));
  }
  return true;
}

// Sends the message, or queues it if earlier messages are queued or there is no connection.
void Route::pass(std::uint32_t kind, std::uint64_t exchange, std::string_view text) {
  if (wire_ == Wire::up && backlog_.waiting() == 0) {
    send_now(kind, exchange, text);
  } else {
    keep(kind, exchange, text);
  }
}

void Route::keep(std::uint32_t kind, std::uint64_t exchange, std::string_view text) {
  if (long_outage_) return fail(exchange, "not sent: there is no connection to " + endpoint_);
  if (!backlog_.keep(kind, exchange, text)) {
    fail(exchange, "not sent: too much data is waiting for a connection to " + endpoint_);
  }
}

void Route::send_now(std::uint32_t kind, std::uint64_t exchange, std::string_view text) {
  const auto sent = ends_.send(kind, exchange, text);
  if (!sent) return send_failed(sent.error(), kind, exchange, text);
  const auto *pending = kind == BH_LANE_REQUEST ? backlog_.find(exchange) : nullptr;
  const std::string_view method = pending == nullptr ? "" : std::string_view(pending->method);
  handshake_.on_sent(kind, exchange, method, text);
  if (method == "\"initialize\"") state_.clear();
  state_.on_sent(method, text);
}

void Route::send_failed(const Error &error, std::uint32_t kind, std::uint64_t exchange,
                        std::string_view text) {
  // These errors mean that the connection is closing and that no part of the message was sent. The
  // message can therefore be queued for the next connection.
  const bool next_connection = error.code == BH_E_UNAVAILABLE || error.code == BH_E_SESSION_LOST;
  if (next_connection && kind != BH_LANE_RESPONSE) keep(kind, exchange, text);
  if (error.code == BH_E_SESSION_LOST) return lost(error);
  if (next_connection) return;
  if (exchange != 0) return fail(exchange, "not sent: " + error.text);
  log(BH_LOG_WARN, "a client message was not sent: " + error.text);
}

void Route::input_ended() {
  if (std::exchange(input_ended_, true)) return;
  check_end();
}

void Route::client_gone() {
  input_ended_ = true;
  backlog_.clear();
  end({});
}

// ---- messages from the endpoint --------------------------------------------------------------

void Route::message(bh_lane lane, std::uint64_t exchange, std::string_view text) {
  if (lane != lane_ || ended_ || state_.is_repetition(exchange)) return;
  if (const auto whose = handshake_.on_answer(exchange, text);
      whose != Handshake::Answer::of_client) {
    if (whose == Handshake::Answer::of_repetition) return state_.announce_lists(ends_);
    return log(BH_LOG_WARN, endpoint_ +
                                " rejected the repeated handshake; reconnect the client if calls "
                                "fail");
  }
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  if (backlog_.find(exchange) != nullptr)
    cancel(&end_timer_);  // restarts the timeout, because more messages may follow
  backlog_.forget(exchange);
  if (exchange == 0) backlog_.note_question(text);
  if (!text.empty()) ends_.to_client(text);
  hold_as_needed();
  if (exchange != 0) check_end();
}

// BH_E_CANCELLED means that the client has cancelled the request and expects no response.
void Route::exchange_failed(bh_lane lane, std::uint64_t exchange, const Error &error) {
  if (lane != lane_ || ended_ || state_.is_repetition(exchange)) return;
  if (error.code == BH_E_CANCELLED) {
    backlog_.forget(exchange);
  } else {
    fail(exchange, error.text);
  }
  hold_as_needed();
  check_end();
}

// ---- responses that the route creates --------------------------------------------------------

void Route::fail(std::uint64_t exchange, std::string_view reason) {
  const Backlog::Pending *pending = backlog_.find(exchange);
  if (pending == nullptr) return;
  const std::string text =
      lost_answer(pending->id, method_name(pending->method) + ": " + std::string(reason));
  backlog_.forget(exchange);
  answer(text);
}

// Sends the client a response that the route itself created. The response counts toward
// max_own_bytes until the current iteration of the event loop ends or, if the client has unread
// output, until the client has read it. The client is paused while the limit is exceeded.
void Route::answer(std::string_view text) {
  if (hold_.add_own_answer(text.size())) {
    reactor_.defer(this, bh::callback<&Route::own_answers_taken>(this));
  }
  ends_.to_client(text);
}

void Route::own_answers_taken() {
  if (client_full_) return;
  hold_.own_answers_taken();
  hold_as_needed();
}

// Responds with an error to every request that has been sent, in order of arrival. Returns the
// number of these requests. Unsent requests remain queued.
std::size_t Route::fail_pending(std::string_view reason) {
  const std::vector<std::uint64_t> sent = backlog_.sent();
  for (const std::uint64_t exchange : sent) fail(exchange, reason);
  return sent.size();
}

void Route::fail_waiting(std::string_view reason) {
  for (const auto &message : backlog_.take_waiting()) fail(message.exchange, reason);
}

// ---- backpressure ------------------------------------------------------------------------------

void Route::client_full(bool full) {
  if (std::exchange(client_full_, full) == full || ended_) return;
  if (wire_ != Wire::none) ends_.hold_lane(full);
  if (full) return;
  own_answers_taken();
  if (end_timer_ == 0) return;
  cancel(&end_timer_);  // restarts the timeout, because the client has read output
  check_end();
}

void Route::lane_full(bh_lane lane, bool full) {
  if (lane != lane_ || wire_ != Wire::up) return;
  hold_.set_lane_full(full);
  hold_as_needed();
}

void Route::hold_as_needed() {
  if (!ended_ && hold_.update(backlog_)) ends_.hold_client(hold_.held());
}

}  // namespace bulkhead::pipe
