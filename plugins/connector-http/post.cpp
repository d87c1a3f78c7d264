#include "post.hpp"

#include <bulkhead/cpp/clock.hpp>

#include <algorithm>

#include "bulkhead/abi/ext/connector.h"
#include "context.hpp"
#include "lane.hpp"
#include "peek.hpp"

namespace connector_http {
namespace {

using bh::ns_per_ms;
constexpr std::size_t first_step = 1 << 20;  // initial buffer size; doubled when full
// Maximum number of bytes to read from a response that is ignored. A connection can be reused only
// if the whole response has been read.
constexpr std::size_t drained_bytes_max = 64 << 10;

}  // namespace

void Post::prepare(Lane &lane, std::uint32_t kind, std::uint64_t exchange, bool initialize,
                   bool http_sse) {
  lane_ = &lane;
  kind_ = kind;
  exchange_ = exchange;
  initialize_ = initialize;
  http_sse_ = http_sse;
  sent_session_ = lane.has_session();
  mode_ = Mode::none;
  answered_ = resuming_ = progressed_ = released_ = false;
  attempts_ = 0;
  expected_ = drained_ = 0;
  began_ns_ = context_.host.now_ns();
  failure_.reset();
  kept_.reset();
  waits_ = false;
}

bh_status Post::start(HttpRoute &route, const HttpRequest &request, bh_error *error) {
  const bh_status status = route.start(request, *this, &call_, error);
  if (status != BH_OK) call_ = nullptr;
  return status;
}

void Post::cancel() noexcept {
  context_.host.timer_cancel(timer_);
  kept_.reset();
  if (call_ != nullptr) std::exchange(call_, nullptr)->cancel();
  context_.spare.give_back(std::move(body_));
  body_ = BodyBuffer{};
  if (feeding_) {
    released_ = true;  // feed() will return this object to the Context
  } else {
    context_.put_post(this);
  }
}

bool Post::overdue(std::uint64_t now_ns) const noexcept {
  if (waits_) return false;
  if (answered_) return now_ns - answered_ns_ > context_.settings.lingering_ms * ns_per_ms;
  const bool waits_for_answer = kind_ == BH_LANE_REQUEST && !http_sse_;
  return !waits_for_answer && now_ns - began_ns_ > context_.settings.quiet_post_ms * ns_per_ms;
}

// ---- response head ------------------------------------------------------------------------------

bool Post::on_head(const ResponseHead &head) {
  if (head.status >= 200 && head.status < 300) return success_head(head);
  mode_ = Mode::error;
  failure_ = describe(head, lane_->url());
  return true;
}

bool Post::success_head(const ResponseHead &head) {
  kept_.reset();
  if (initialize_ && !http_sse_ && !resuming_ && !lane_->take_session(head.session_id)) {
    return refuse(BH_E_PROTOCOL, "the session id contains bytes that are not allowed");
  }
  if (kind_ != BH_LANE_REQUEST || http_sse_) {
    mode_ = Mode::ignored;
    const bool ends = head.framing != Framing::until_close &&
                      !is_media_type(head.content_type, "text/event-stream");
    return ends || done_with();
  }
  if (head.status == 204 || (head.status == 202 && !lane_->listens())) {
    return refuse(BH_E_PROTOCOL, "the server accepted the request but sent no response (HTTP " +
                                     std::to_string(head.status) + "); the request may have run");
  }
  // 202 is not a valid status for a request, but some servers return it and then respond on the
  // lane's event stream.
  if (head.status == 202) {
    mode_ = Mode::ignored;
    return head.framing != Framing::until_close || done_with();
  }
  if (is_media_type(head.content_type, "text/event-stream")) {
    mode_ = Mode::events;
    if (resuming_) {
      sse_.restart();
    } else {
      sse_.reset(context_.settings.message_bytes);
    }
    return true;
  }
  if (resuming_)
    return refuse(BH_E_PROTOCOL,
                  "the server did not return an event stream when the stream was resumed");
  if (!head.content_type.empty() && !is_media_type(head.content_type, "application/json")) {
    return refuse(BH_E_PROTOCOL,
                  "the response is neither application/json nor text/event-stream; check the url");
  }
  mode_ = Mode::json;
  return reserve_for(head);
}

bool Post::reserve_for(const ResponseHead &head) {
  body_ = context_.spare.take();
  if (head.framing != Framing::length) return true;
  if (head.content_length > context_.settings.message_bytes) {
    return refuse(BH_E_LIMIT, "the response of " + std::to_string(head.content_length) +
                                  " bytes exceeds the limit of " +
                                  std::to_string(context_.settings.message_bytes) + " bytes");
  }
  expected_ = head.content_length;
  return true;
}

// Finishes the POST from within one of its callbacks, without reading the rest of the response.
bool Post::done_with() {
  call_ = nullptr;
  lane_->post_finished(*this);
  return false;
}

// Fails the POST from within one of its callbacks.
bool Post::refuse(bh_status code, const std::string &text) {
  call_ = nullptr;
  finish_failed(bh::make_error(code, text));
  return false;
}

// ---- response body ------------------------------------------------------------------------------

std::span<char> Post::room() {
  if (mode_ != Mode::json) return {};
  // Allocates memory as data arrives, because the announced length may be wrong. If the allocation
  // fails, on_body() reports it.
  if (body_.room().empty() && body_.size() < expected_) {
    body_.reserve(std::min(expected_, std::max(first_step, body_.capacity() * 2)));
  }
  return body_.room();
}

bool Post::on_body(std::string_view piece) {
  switch (mode_) {
    case Mode::events:
      return feed(piece);
    case Mode::json:
      if (body_.size() + piece.size() > context_.settings.message_bytes) {
        return refuse(BH_E_LIMIT, "the response exceeds the limit of " +
                                      std::to_string(context_.settings.message_bytes) + " bytes");
      }
      return body_.append(piece) || refuse(BH_E_LIMIT, "out of memory for the response");
    case Mode::error: {
      const std::size_t room = context_.settings.error_body_bytes;
      if (body_.size() < room) body_.append(piece.substr(0, room - body_.size()));
      return true;
    }
    case Mode::ignored:
      drained_ += piece.size();
      return drained_ <= drained_bytes_max || done_with();
    case Mode::none:
      return true;
  }
  return true;
}

bool Post::feed(std::string_view piece) {
  feeding_ = true;
  std::size_t at = 0;
  SseEvent event;
  bool fits = true;
  while (!released_) {
    const SseParser::Step step = sse_.next(piece, &at, &event);
    fits = step != SseParser::Step::too_large;
    if (step != SseParser::Step::event) break;
    progressed_ = true;
    if (event.data.empty() || !(event.type.empty() || event.type == "message")) continue;
    if (!answered_ && holds_response(event.data)) {
      answered_ = true;
      answered_ns_ = context_.host.now_ns();
      // Must be called before deliver(), because the host may send the next message during that
      // call.
      if (initialize_) lane_->initialize_answered();
    }
    lane_->deliver(exchange_, event.data);
  }
  feeding_ = false;
  if (released_) {
    context_.put_post(this);
    return false;
  }
  if (fits) return true;
  return refuse(BH_E_LIMIT, "an event exceeds the limit of " +
                                std::to_string(context_.settings.message_bytes) + " bytes");
}

void Post::on_whole(const ResponseHead &head, std::string_view body) {
  call_ = nullptr;
  const bool plain = kind_ == BH_LANE_REQUEST && head.status == 200 && !initialize_ && !http_sse_ &&
                     !resuming_ && is_media_type(head.content_type, "application/json") &&
                     !body.empty() && body.size() <= context_.settings.message_bytes;
  if (plain) {  // usual case: delivers the response directly from the receive buffer
    Lane &lane = *lane_;
    const std::uint64_t exchange = exchange_;
    lane.post_finished(*this);
    lane.deliver_answer(exchange, body);
    return;
  }
  if (!on_head(head)) return;
  if (body.empty() || on_body(body)) on_done(nullptr);
}

void Post::on_done(const bh_error *error) {
  call_ = nullptr;
  if (mode_ == Mode::events || resuming_) return stream_over(error);
  if (error != nullptr) return finish_failed(*error);
  if (mode_ == Mode::json) return deliver_body();
  if (mode_ == Mode::error) return lane_->post_refused(*this);
  lane_->post_finished(*this);
}

void Post::deliver_body() {
  if (body_.size() == 0) {
    return finish_failed(bh::make_error(BH_E_PROTOCOL, "the response is empty"));
  }
  BodyBuffer body = std::move(body_);
  Lane &lane = *lane_;
  Context &context = context_;
  const std::uint64_t exchange = exchange_;
  lane.post_finished(*this);
  lane.deliver_answer(exchange, body.view());
  context.spare.give_back(std::move(body));
}

void Post::finish_failed(const bh_error &error) {
  lane_->post_failed(*this, error);
}

// ---- retries ------------------------------------------------------------------------------------

void Post::keep(std::string message, LaneHeaders headers, std::uint64_t deadline_ns) {
  kept_ = Kept{std::move(message), std::move(headers), deadline_ns, 0};
}

bool Post::repeat_later() {
  if (!kept_ || !failure_->asks_to_wait() || !not_repeated().empty()) return false;
  ++kept_->repeats;
  waits_ = true;
  timer_ = context_.host.timer_start(failure_->retry_after_ms, bh::callback<&Post::repeat>(this));
  return true;
}

std::string Post::not_repeated() const {
  if (!kept_ || !failure_->asks_to_wait()) return {};
  const std::uint32_t wait_ms = failure_->retry_after_ms;
  if (kept_->repeats >= context_.settings.repeats)
    return "after " + std::to_string(kept_->repeats) + " retries";
  if (kept_->deadline_ns == 0 || context_.host.now_ns() + wait_ms * ns_per_ms < kept_->deadline_ns)
    return {};
  return "the server asks for a retry after " + std::to_string((wait_ms + 999) / 1000) +
         " s, which exceeds the request's time-out";
}

void Post::repeat() {
  timer_ = 0;
  waits_ = false;
  began_ns_ = context_.host.now_ns();
  mode_ = Mode::none;
  body_.clear();
  failure_.reset();
  sent_session_ = lane_->has_session();
  const std::string head = lane_->post_head(kept_->headers);
  const bh_str part = bh::str(kept_->message);
  HttpRequest request;
  request.head = head;
  request.target = lane_->post_target();
  request.parts = &part;
  request.part_count = 1;
  request.body_bytes = kept_->message.size();
  request.fresh_connection = initialize_;
  bh_error error = bh::make_error();
  if (start(lane_->route(), request, &error) != BH_OK) finish_failed(error);
}

// ---- interrupted event streams ------------------------------------------------------------------

void Post::stream_over(const bh_error *error) {
  if (answered_) return lane_->post_finished(*this);
  if (mode_ == Mode::error && failure_ && failure_->status < 500 && failure_->status != 429) {
    return lane_->post_refused(*this);  // the server does not support resuming streams
  }
  if (progressed_) attempts_ = 0;
  const bool resumable = !lane_->stateless() && !sse_.last_event_id().empty();
  if (resumable && attempts_ < context_.settings.resume_attempts) {
    resuming_ = true;
    progressed_ = false;
    const Settings &s = context_.settings;
    const std::uint64_t asked = sse_.retry_ms().value_or(static_cast<std::uint32_t>(s.retry_ms));
    const std::uint64_t wait = std::clamp(asked, s.retry_min_ms, s.retry_max_ms);
    timer_ = context_.host.timer_start(std::min(wait << attempts_++, s.retry_max_ms),
                                       bh::callback<&Post::resume>(this));
    return;
  }
  std::string text = "the event stream ended before the response; the request may have run";
  if (error != nullptr) text = std::string(bh::text(*error)) + " (event stream)";
  finish_failed(bh::make_error(BH_E_IO, text));
}

void Post::resume() {
  timer_ = 0;
  mode_ = Mode::none;
  body_.clear();
  failure_.reset();
  const std::string head = lane_->get_head(sse_.last_event_id());
  HttpRequest request;
  request.method = Method::get;
  request.head = head;
  request.target = lane_->url().target;
  request.fresh_connection = true;
  bh_error error = bh::make_error();
  if (lane_->route().start(request, *this, &call_, &error) != BH_OK) {
    call_ = nullptr;
    stream_over(&error);
  }
}

}  // namespace connector_http
