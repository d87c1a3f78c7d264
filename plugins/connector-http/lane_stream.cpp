// Implements the event stream of a lane and the fallback to HTTP+SSE.
#include <algorithm>
#include <utility>

#include "bulkhead/cpp/basics.hpp"
#include "context.hpp"
#include "lane.hpp"
#include "peek.hpp"

namespace connector_http {

// ---- Streamable HTTP: the GET for messages that belong to no request ----------------------------

void Lane::open_stream() {
  if (wire_ != Wire::streamable || !want_stream_ || stream_.running()) return;
  bh_error error = bh::make_error();
  if (stream_.start(*route_, &error) == BH_OK) return;
  EventStream::End end;
  end.error = error;
  reopen_stream(end);
}

void Lane::stream_opened() {
  stream_worked_ = true;
}

void Lane::stream_event(const SseEvent &event) {
  if (wire_ == Wire::seeking) {
    if (event.type == "endpoint") take_endpoint(event.data);
    return;
  }
  if (!event.data.empty() && (event.type.empty() || event.type == "message"))
    deliver(0, event.data);
}

void Lane::stream_ended(const EventStream::End &end) {
  switch (wire_) {
    case Wire::streamable:
      return reopen_stream(end);
    case Wire::seeking: {
      const std::optional<HttpFailure> why = stream_.failure();
      return seek_failed(end.error, why ? &*why : nullptr);
    }
    case Wire::http_sse: {
      // In HTTP+SSE, the session ends when the stream ends.
      const std::string text = "lost the event stream: " + std::string(bh::text(end.error));
      return go_down(bh::make_error(end.too_large ? BH_E_LIMIT : BH_E_SESSION_LOST, text));
    }
    case Wire::down:
    case Wire::closed:
      return;
  }
}

void Lane::reopen_stream(const EventStream::End &end) {
  const Settings &s = context_.settings;
  if (const auto &failure = stream_.failure(); end.refused && failure) {
    // If the stream has worked before, the server must have lost the session.
    if (stream_worked_ && has_session() && (failure->status == 404 || failure->status == 400)) {
      const HttpFailure why = *failure;
      const std::string text = "session expired (HTTP " + std::to_string(why.status) + ")";
      return session_lost(nullptr, bh::make_error(BH_E_SESSION_LOST, text), why);
    }
    const bool offered = failure->status > 400 && failure->status != 404 && failure->status != 405;
    if (!offered) {
      want_stream_ = false;
      return;
    }
    if (!std::exchange(refusal_logged_, true)) {
      context_.log(
          BH_LOG_WARN, server_,
          "the event stream was rejected and will be retried: " + std::string(bh::text(end.error)));
    }
  }
  if (end.too_large) context_.log(BH_LOG_WARN, server_, bh::text(end.error));
  stream_failures_ = end.opened ? 0 : stream_failures_ + 1;
  if (!end.opened && !end.refused && stream_worked_ && stream_failures_ >= s.stream_failures) {
    return go_down(end.error);
  }
  const std::uint64_t asked = stream_.retry_ms().value_or(static_cast<std::uint32_t>(s.retry_ms));
  std::uint64_t wait = std::clamp(asked, s.retry_min_ms, s.retry_max_ms);
  if (!end.progressed) {
    wait = context_.jittered(std::min(wait << std::min(stream_failures_, 10u), s.backoff_max_ms));
  }
  start_timer<&Lane::stream_timer_, &Lane::open_stream>(wait);
}

// ---- HTTP+SSE -----------------------------------------------------------------------------------

bool Lane::may_fall_back(const Post &post) const {
  if (!post.initialize() || wire_ != Wire::streamable || !initialize_kept_) return false;
  const std::uint16_t status = post.failure().status;
  // These statuses indicate a problem with the request, not with the transport.
  const bool other_reason = status == 401 || status == 403 || status == 407 || status == 408 ||
                            status == 413 || status == 429;
  return status >= 400 && status < 500 && !other_reason;
}

void Lane::fall_back(Post &post) {
  first_error_ = to_error(post.failure(), false);
  first_body_.assign(answers_a_request(post.error_body()) ? post.error_body() : std::string_view{});
  Queued again = initialize_;
  remove(post);
  queued_bytes_ += again.size();
  queue_.push_front(std::move(again));
  bh_error error = bh::make_error();
  if (seek_http_sse(&error) != BH_OK) seek_failed(error);
}

bh_status Lane::seek_http_sse(bh_error *error) {
  wire_ = Wire::seeking;
  const bh_status status = stream_.start(*route_, error);
  if (status != BH_OK) {
    wire_ = Wire::streamable;
    return status;
  }
  start_timer<&Lane::stream_timer_, &Lane::seek_timed_out>(context_.settings.endpoint_wait_ms);
  return BH_OK;
}

void Lane::seek_timed_out() {
  stream_.stop();
  seek_failed(bh::make_error(BH_E_TIMEOUT, "no endpoint event was received on the event stream"));
}

// Called when the server has turned out to have no sessions. If the server responded late,
// `initialize` may have been sent as well. This function undoes the effects of that request: it
// deletes the session if a session ID has arrived, stops using HTTP+SSE, and restores the URL of
// the definition. The stream's buffers are kept, because this function may be called while an event
// of the stream is being delivered.
void Lane::forget_initialize() {
  if (wire_ == Wire::streamable && has_session()) delete_session();
  session_.clear();
  expect_initialized_ = false;
  initialize_kept_ = false;
  initialize_ = {};
  first_body_.clear();
  if (wire_ == Wire::streamable || definition_.http_sse_only) return;
  context_.host.timer_cancel(stream_timer_);
  stream_.stop();
  post_url_ = definition_.url;
  wire_ = Wire::streamable;
}

// Called if HTTP+SSE does not work either. If the definition's type is "sse", the lane goes down.
// If the server has responded to `initialize` with a JSON-RPC error, delivers this response and
// sends the queued messages. Otherwise, the queued messages fail with the errors of both attempts.
void Lane::seek_failed(const bh_error &error, const HttpFailure *why) {
  context_.host.timer_cancel(stream_timer_);
  if (definition_.http_sse_only) return go_down(error, why);
  wire_ = Wire::streamable;
  stream_.forget();
  const std::uint64_t exchange = initialize_.exchange;
  const bool known = initialize_kept_;
  initialize_kept_ = false;
  initialize_ = {};
  if (known && !first_body_.empty()) {
    const std::string body = std::exchange(first_body_, {});
    abandon(exchange);
    deliver(exchange, body);
    return send_queued();
  }
  const std::deque<Queued> rest = std::exchange(queue_, {});
  queued_bytes_ = 0;
  const std::string text =
      std::string(bh::text(first_error_)) + "; as HTTP+SSE: " + std::string(bh::text(error));
  const bh_error both = bh::make_error(first_error_.code, text);
  for (const Queued &q : rest) fail_exchange(q.exchange, both);
}

void Lane::take_endpoint(std::string_view reference) {
  context_.host.timer_cancel(stream_timer_);
  std::string why;
  auto url = resolve_url(definition_.url, reference, &why);
  if (url && !same_origin(*url, definition_.url)) {
    why = "the endpoint event names another origin (" + url->origin() + ")";
    url.reset();
  } else if (!url) {
    why = "the endpoint event is invalid: " + why;
  }
  if (!url) {
    stream_.stop();
    return go_down(bh::make_error(BH_E_PROTOCOL, why));
  }
  post_url_ = std::move(*url);
  session_.clear();
  wire_ = Wire::http_sse;
  expect_initialized_ = true;
  initialize_kept_ = false;
  initialize_ = {};
  build_heads();
  send_queued();
}

}  // namespace connector_http
