#include "pipe/route.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace bulkhead::pipe {
namespace {

constexpr std::string_view initialized_notification =
    R"({"jsonrpc":"2.0","method":"notifications/initialized"})";

}  // namespace

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
  if (left_out > 0) line += " (" + std::to_string(left_out) + " lines before this left out)";
  ends_.log(level, line);
}

void Route::start() {
  started_ns_ = reactor_.now_ns();
  attempt();
}

// ---- from the client ---------------------------------------------------------------------------

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
  // A question whose connection is gone has no asker any more, and its id may be another's now.
  if (response && (wire_ != Wire::up || !take_question(line.id))) return false;
  pass(response ? BH_LANE_RESPONSE : BH_LANE_NOTIFICATION, 0, text);
  return false;
}

bool Route::request(const Line &line, std::string_view text) {
  const std::size_t bytes = line.id.size() + line.method.size();
  const bool full =
      pending_.size() >= limits_.max_pending || pending_bytes_ + bytes > limits_.max_pending_bytes;
  if (full) {
    const std::string id = line.id.size() <= limits_.max_pending_bytes ? std::string(line.id) : "";
    answer(
        lost_answer(id, method_name(line.method) + ": not sent: too many requests are under way"));
    return true;
  }
  const std::uint64_t exchange = next_exchange_++;
  pending_.emplace(exchange, Pending{std::string(line.id), std::string(line.method)});
  pending_bytes_ += bytes;
  pass(BH_LANE_REQUEST, exchange, text);
  return true;
}

// Messages leave in the order in which they came.
void Route::pass(std::uint32_t kind, std::uint64_t exchange, std::string_view text) {
  if (wire_ == Wire::up && waiting_.empty()) {
    send_now(kind, exchange, text);
  } else {
    keep(kind, exchange, text);
  }
}

void Route::keep(std::uint32_t kind, std::uint64_t exchange, std::string_view text) {
  if (long_outage_) return fail(exchange, "not sent: there is no connection to " + endpoint_);
  if (waiting_bytes_ + text.size() > limits_.max_waiting_bytes) {
    return fail(exchange, "not sent: too much waits for a connection to " + endpoint_);
  }
  waiting_bytes_ += text.size();
  waiting_.push_back({kind, exchange, std::string(text)});
}

void Route::send_now(std::uint32_t kind, std::uint64_t exchange, std::string_view text) {
  const auto sent = ends_.send(kind, exchange, text);
  if (!sent) return send_failed(sent.error(), kind, exchange, text);
  note_handshake(kind, exchange, text);
}

void Route::send_failed(const Error &error, std::uint32_t kind, std::uint64_t exchange,
                        std::string_view text) {
  // The connection is ending, nothing of this message has left: it waits for the next one.
  const bool next_connection = error.code == BH_E_UNAVAILABLE || error.code == BH_E_SESSION_LOST;
  if (next_connection && kind != BH_LANE_RESPONSE) keep(kind, exchange, text);
  if (error.code == BH_E_SESSION_LOST) return lost(error);
  if (next_connection) return;
  if (exchange != 0) return fail(exchange, "not sent: " + error.text);
  log(BH_LOG_WARN, "a message of the client was not sent: " + error.text);
}

void Route::input_ended() {
  if (std::exchange(input_ended_, true)) return;
  check_end();
}

void Route::client_gone() {
  input_ended_ = true;
  pending_.clear();
  waiting_.clear();
  end({});
}

// ---- the handshake, again ----------------------------------------------------------------------

void Route::note_handshake(std::uint32_t kind, std::uint64_t exchange, std::string_view text) {
  const std::string_view initialize = "\"initialize\"";
  if (kind == BH_LANE_REQUEST) {
    const auto at = pending_.find(exchange);
    if (at == pending_.end() || at->second.method != initialize) return;
    handshake_ = {};
    if (text.size() > limits_.max_handshake_bytes) return;
    handshake_.exchange = exchange;
    handshake_.sent = text;
  } else if (kind == BH_LANE_NOTIFICATION && !handshake_.initialized) {
    handshake_.initialized = classify(text).method == "\"notifications/initialized\"";
  }
}

// True: it was the answer to our repetition, which is not for the client.
bool Route::take_handshake_answer(std::uint64_t exchange, std::string_view text) {
  if (exchange == 0) return false;
  if (exchange == handshake_.repeated) {
    handshake_.repeated = 0;
    if (!classify(text).has_result) {
      log(BH_LOG_WARN, endpoint_ +
                           " has refused the repeated handshake; the client should connect "
                           "anew if calls fail");
    }
    return true;
  }
  if (exchange == handshake_.exchange) {
    handshake_.exchange = 0;
    if (classify(text).has_result) handshake_.initialize = std::move(handshake_.sent);
    handshake_.sent.clear();
  }
  return false;
}

// A new endpoint knows nothing of the client that the old one has met.
void Route::repeat_handshake() {
  if (handshake_.initialize.empty()) return;
  handshake_.repeated = next_exchange_++;
  const auto sent = ends_.send(BH_LANE_REQUEST, handshake_.repeated, handshake_.initialize);
  if (sent && handshake_.initialized) {
    static_cast<void>(ends_.send(BH_LANE_NOTIFICATION, 0, initialized_notification));
  }
}

// ---- from the endpoint -------------------------------------------------------------------------

void Route::message(bh_lane lane, std::uint64_t exchange, std::string_view text) {
  if (lane != lane_ || ended_) return;
  if (take_handshake_answer(exchange, text)) return;
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  if (pending_.contains(exchange)) cancel(&end_timer_);  // more may come: the wait begins anew
  forget(exchange);
  if (exchange == 0) note_question(text);
  if (!text.empty()) ends_.to_client(text);
  hold_as_needed();
  if (exchange != 0) check_end();
}

void Route::note_question(std::string_view text) {
  const Line line = classify(text);
  if (line.id.empty() || line.method.empty() || line.id.size() > limits_.max_question_id) return;
  if (questions_.size() == limits_.max_questions) questions_.pop_front();
  questions_.emplace_back(line.id);
}

bool Route::take_question(std::string_view id) {
  const auto at = std::find(questions_.begin(), questions_.end(), id);
  if (at == questions_.end()) return false;
  questions_.erase(at);
  return true;
}

// BH_E_CANCELLED: the endpoint has nothing to say, since the client has cancelled.
void Route::exchange_failed(bh_lane lane, std::uint64_t exchange, const Error &error) {
  if (lane != lane_ || ended_) return;
  if (error.code == BH_E_CANCELLED) {
    forget(exchange);
  } else {
    fail(exchange, error.text);
  }
  hold_as_needed();
  check_end();
}

// ---- answers of our own ------------------------------------------------------------------------

void Route::forget(std::uint64_t exchange) {
  const auto at = pending_.find(exchange);
  if (at == pending_.end()) return;
  pending_bytes_ -= at->second.id.size() + at->second.method.size();
  pending_.erase(at);
}

void Route::fail(std::uint64_t exchange, std::string_view reason) {
  const auto at = pending_.find(exchange);
  if (at == pending_.end()) return;
  const std::string text =
      lost_answer(at->second.id, method_name(at->second.method) + ": " + std::string(reason));
  forget(exchange);
  answer(text);
}

// Nobody but the client can be held for these. Counted within one turn of the loop, and on while
// the client does not take them.
void Route::answer(std::string_view text) {
  if (own_bytes_ == 0) reactor_.defer(this, bh::callback<&Route::own_answers_taken>(this));
  own_bytes_ += text.size();
  ends_.to_client(text);
}

void Route::own_answers_taken() {
  if (client_full_) return;
  own_bytes_ = 0;
  hold_as_needed();
}

// Those that wait for a connection stay. In the order in which they were asked.
std::size_t Route::fail_pending(std::string_view reason) {
  std::vector<std::uint64_t> sent;
  for (const auto &[exchange, unused] : pending_) sent.push_back(exchange);
  for (const Waiting &message : waiting_) std::erase(sent, message.exchange);
  std::sort(sent.begin(), sent.end());
  for (const std::uint64_t exchange : sent) fail(exchange, reason);
  return sent.size();
}

void Route::fail_waiting(std::string_view reason) {
  const std::deque<Waiting> waiting = std::exchange(waiting_, {});
  waiting_bytes_ = 0;
  for (const Waiting &message : waiting) fail(message.exchange, reason);
}

// ---- one side waits for the other --------------------------------------------------------------

void Route::client_full(bool full) {
  if (std::exchange(client_full_, full) == full || ended_) return;
  if (wire_ != Wire::none) ends_.hold_lane(full);
  if (full) return;
  own_answers_taken();
  if (end_timer_ == 0) return;
  cancel(&end_timer_);  // it still reads: the wait for the rest begins anew
  check_end();
}

void Route::lane_full(bh_lane lane, bool full) {
  if (lane != lane_ || wire_ != Wire::up) return;
  lane_full_ = full;
  hold_as_needed();
}

void Route::hold_as_needed() {
  if (ended_) return;
  bool hold = lane_full_;
  hold |= pending_mark_.reached(pending_.size(), limits_.max_pending);
  hold |= pending_bytes_mark_.reached(pending_bytes_, limits_.max_pending_bytes / 2);
  hold |= waiting_mark_.reached(waiting_bytes_, limits_.max_waiting_bytes / 2);
  hold |= own_mark_.reached(own_bytes_, limits_.max_own_bytes);
  if (std::exchange(client_held_, hold) != hold) ends_.hold_client(hold);
}

}  // namespace bulkhead::pipe
