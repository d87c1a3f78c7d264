#include "lane.hpp"

#include <algorithm>

#include "bulkhead/cpp/basics.hpp"
#include "bulkhead/cpp/json_reader.hpp"
#include "context.hpp"
#include "http-codec/head_writer.hpp"
#include "peek.hpp"

namespace connector_http {

using http_codec::append_field;
using http_codec::append_request_line;

namespace {

constexpr std::size_t session_bytes_max = 1024;
constexpr std::string_view content_headers =
    "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";

std::uint64_t size_of(const bh_lane_message &message) noexcept {
  std::uint64_t n = 0;
  for (std::uint32_t i = 0; i < message.part_count; ++i) n += message.parts[i].n;
  return n;
}

std::string joined(const bh_lane_message &message) {
  std::string out;
  out.reserve(size_of(message));
  for (std::uint32_t i = 0; i < message.part_count; ++i) out.append(bh::view(message.parts[i]));
  return out;
}

}  // namespace

Lane::Lane(Context &context, bh_lane handle, std::string server, Definition &&definition,
           std::unique_ptr<HttpRoute> route)
    : context_(context),
      handle_(handle),
      server_(std::move(server)),
      definition_(std::move(definition)),
      route_(std::move(route)),
      post_url_(definition_.url),
      stream_(context, *this) {
  stream_.forget();
  build_heads();
}

Lane::~Lane() {
  halt();
}

void Lane::halt() noexcept {
  context_.host.timer_cancel(stream_timer_);
  context_.host.timer_cancel(hold_timer_);
  context_.host.timer_cancel(close_timer_);
  stream_.stop();
  if (session_delete_.call != nullptr) std::exchange(session_delete_.call, nullptr)->cancel();
  while (!posts_.empty()) {
    Post *post = posts_.back();
    posts_.pop_back();
    post->cancel();
  }
  held_by_ = nullptr;
}

// ---- request heads ------------------------------------------------------------------------------

std::string Lane::head(std::string_view method, std::string_view target, bool revision) const {
  std::string out;
  append_request_line(out, method, target);
  append_field(out, "Host", definition_.url.authority());
  if (!definition_.has_user_agent) append_field(out, "User-Agent", context_.user_agent);
  out += definition_.headers;
  if (!session_.empty()) append_field(out, "Mcp-Session-Id", session_);
  if (revision && !revision_.empty()) append_field(out, "MCP-Protocol-Version", revision_);
  return out;
}

void Lane::build_heads() {
  post_head_ = head("POST", post_url_.target, true).append(content_headers);
  post_head_without_revision_ = head("POST", post_url_.target, false).append(content_headers);
}

std::string Lane::post_head(const LaneHeaders &headers) const {
  const std::string &common = headers.revision ? post_head_without_revision_ : post_head_;
  std::string out;
  out.reserve(common.size() + headers.lines.size());
  return out.append(common).append(headers.lines);
}

std::string Lane::get_head(std::string_view last_event_id) const {
  std::string out = head("GET", definition_.url.target);
  append_field(out, "Accept", "text/event-stream");
  append_field(out, "Cache-Control", "no-store");
  if (!last_event_id.empty()) append_field(out, "Last-Event-ID", last_event_id);
  return out;
}

bool Lane::take_session(std::string_view id) {
  if (id.empty()) return true;
  const bool visible =
      std::all_of(id.begin(), id.end(), [](char c) { return c >= 0x21 && c <= 0x7E; });
  if (!visible || id.size() > session_bytes_max) return false;
  session_.assign(id);
  build_heads();
  return true;
}

// ---- sending ------------------------------------------------------------------------------------

bh_status Lane::send(const bh_lane_message &message, bh_error *error) {
  LaneHeaders headers;
  if (const bh_status s = read_headers(message, &headers, error); s != BH_OK) return s;
  return send(message, std::move(headers), error);
}

bh_status Lane::send(const bh_lane_message &message, LaneHeaders &&headers, bh_error *error) {
  // Stateless servers do not receive notifications. After `notifications/cancelled`, the host calls
  // abandon(), which cancels the request by closing its response.
  if (stateless() && message.kind == BH_LANE_NOTIFICATION) return BH_OK;
  switch (wire_) {
    case Wire::down:
    case Wire::closed:
      return bh::fail(error, BH_E_UNAVAILABLE, "the session is closed");
    case Wire::seeking:
      return enqueue(message, std::move(headers), error);
    case Wire::http_sse:
      if (held_by_ != nullptr) return enqueue(message, std::move(headers), error);
      break;
    case Wire::streamable:
      if (held_by_ != nullptr) return enqueue(message, std::move(headers), error);
      if (definition_.http_sse_only) {
        bh_status s = enqueue(message, std::move(headers), error);
        if (s != BH_OK) return s;
        s = seek_http_sse(error);
        if (s != BH_OK) {
          queue_.clear();
          queued_bytes_ = 0;
        }
        return s;
      }
      if ((message.flags & BH_LANE_INITIALIZE) != 0) {
        initialize_ = {message.kind,        message.flags,   message.exchange,
                       message.deadline_ns, joined(message), headers};
        initialize_kept_ = true;
      }
      break;
  }
  return start_post(message, headers, error);
}

bh_status Lane::start_post(const bh_lane_message &message, const LaneHeaders &headers,
                           bh_error *error) {
  const std::string own_head = headers.empty() ? std::string() : post_head(headers);
  HttpRequest request;
  request.head = headers.empty() ? post_head_ : own_head;
  request.target = post_url_.target;
  request.parts = message.parts;
  request.part_count = message.part_count;
  request.body_bytes = size_of(message);
  const bool initialize = (message.flags & BH_LANE_INITIALIZE) != 0;
  request.fresh_connection = initialize;
  Post *post = context_.take_post();
  post->prepare(*this, message.kind, message.exchange, initialize, wire_ == Wire::http_sse);
  if ((message.flags & (BH_LANE_INITIALIZE | BH_LANE_REPEATABLE)) != 0 &&
      request.body_bytes <= context_.settings.repeatable_bytes)
    post->keep(joined(message), headers, message.deadline_ns);
  const bh_status status = post->start(*route_, request, error);
  if (status != BH_OK) {
    context_.put_post(post);
    return status;
  }
  post->place = posts_.size();
  posts_.push_back(post);
  context_.arm_sweep();
  if (expect_initialized_ && message.kind == BH_LANE_NOTIFICATION) {
    hold_for(post);
  }
  return BH_OK;
}

bh_status Lane::enqueue(const bh_lane_message &message, LaneHeaders &&headers, bh_error *error) {
  const std::uint64_t n = size_of(message) + headers.lines.size();
  const Settings &s = context_.settings;
  if (queue_.size() >= s.queued_messages ||
      (queued_bytes_ > 0 && queued_bytes_ + n > s.write_queue_bytes)) {
    return bh::fail(error, BH_E_LIMIT,
                    "too many messages or too many bytes are waiting for the connection");
  }
  queue_.push_back({message.kind, message.flags, message.exchange, message.deadline_ns,
                    joined(message), std::move(headers)});
  queued_bytes_ += n;
  return BH_OK;
}

void Lane::send_queued() {
  while (!queue_.empty() && held_by_ == nullptr &&
         (wire_ == Wire::streamable || wire_ == Wire::http_sse)) {
    const Queued next = std::move(queue_.front());
    queue_.pop_front();
    queued_bytes_ -= next.size();
    const bh_str part = bh::str(next.bytes);
    bh_lane_message message{};
    message.size = sizeof message;
    message.kind = next.kind;
    message.exchange = next.exchange;
    message.deadline_ns = next.deadline_ns;
    message.flags = next.flags;
    message.part_count = 1;
    message.parts = &part;
    bh_error error = bh::make_error();
    if (start_post(message, next.headers, &error) != BH_OK) fail_exchange(next.exchange, error);
  }
}

// Makes other messages wait until the POST has finished; see expect_initialized_.
void Lane::hold_for(Post *post) {
  expect_initialized_ = false;
  held_by_ = post;
  start_timer<&Lane::hold_timer_, &Lane::release_hold>(context_.settings.hold_ms);
}

void Lane::release_hold() {
  held_by_ = nullptr;
  context_.host.timer_cancel(hold_timer_);
  send_queued();
  if (want_stream_ && wire_ == Wire::streamable) open_stream();
}

// ---- receiving ----------------------------------------------------------------------------------

void Lane::deliver(std::uint64_t exchange, std::string_view message) {
  if (wire_ == Wire::closed || wire_ == Wire::down) return;
  void *ctx = context_.host.ctx();
  if (!is_batch(message)) return context_.up->message(ctx, handle_, exchange, bh::str(message));
  // The callback may end the request or the stream that delivered the batch, which frees the text
  // of the batch.
  const Wire wire = wire_;
  const bool whole = bh::json::for_each_element(message, [&](std::string_view element) {
    context_.up->message(ctx, handle_, exchange, bh::str(element));
    return wire_ == wire;
  });
  if (!whole)
    fail_exchange(exchange,
                  bh::make_error(BH_E_PROTOCOL, "the batch in the response is malformed"));
}

void Lane::deliver_answer(std::uint64_t exchange, std::string_view message) {
  deliver(exchange, message);
  if (holds_response(message)) return;
  fail_exchange(
      exchange,
      bh::make_error(
          BH_E_PROTOCOL,
          "the response contains neither a result nor an error; the request may have run"));
}

void Lane::remove(Post &post) noexcept {
  posts_[post.place] = posts_.back();
  posts_[post.place]->place = post.place;
  posts_.pop_back();
  post.cancel();
}

void Lane::post_finished(Post &post) {
  const bool releases = held_by_ == &post;
  if (post.initialize() && !post.answered()) initialize_answered();
  remove(post);
  if (releases) release_hold();
}

void Lane::initialize_answered() {
  if (wire_ == Wire::streamable) expect_initialized_ = true;
  initialize_kept_ = false;
  initialize_ = {};
}

void Lane::post_failed(Post &post, const bh_error &error, const HttpFailure *why) {
  const std::uint64_t exchange = post.exchange();
  const bool silent = post.kind() != BH_LANE_REQUEST;
  post_finished(post);
  if (silent) {
    context_.log(BH_LOG_WARN, server_,
                 "a message was not delivered: " + std::string(bh::text(error)));
  } else {
    fail_exchange(exchange, error, why);
  }
}

void Lane::fail_exchange(std::uint64_t exchange, const bh_error &error, const HttpFailure *why) {
  if (exchange == 0 || wire_ == Wire::closed || wire_ == Wire::down) return;
  const ReportedFailure failure(error, why);
  context_.up->exchange_failed(context_.host.ctx(), handle_, exchange, failure.get());
}

// After a restart, a server may return 400 for an unknown session ID. But if the response contains
// the ID of the request, the server has processed the request, so the session exists.
bool Lane::is_lost_session(const Post &post) const {
  if (!post.sent_session() || wire_ != Wire::streamable) return false;
  const std::uint16_t status = post.failure().status;
  return status == 404 || (status == 400 && mentions(post.error_body(), "session") &&
                           !answers(post.error_body(), post.exchange()));
}

void Lane::post_refused(Post &post) {
  const HttpFailure failure = post.failure();
  const std::string status = "HTTP " + std::to_string(failure.status);
  const bool lost = is_lost_session(post);
  const bh_error expired =
      bh::make_error(BH_E_SESSION_LOST, lost ? "session expired (" + status + ")" : "");
  if (lost && !post.resuming()) return session_lost(&post, expired, failure);
  if (may_fall_back(post)) return fall_back(post);
  if (post.repeat_later()) return;
  if (post.resuming()) {  // the server accepted the request before the stream was interrupted
    post_failed(post, bh::make_error(BH_E_IO,
                                     "the event stream ended before the response, and the server "
                                     "does not resume the stream (" +
                                         status + "); the request may have run"));
    if (lost) session_lost(nullptr, expired, failure);
    return;
  }
  if (post.kind() == BH_LANE_REQUEST && answers_a_request(post.error_body()) &&
      !hides_generation(failure.status)) {
    const std::string body(post.error_body());
    const std::uint64_t exchange = post.exchange();
    post_finished(post);
    return deliver(exchange, body);
  }
  bh_error error = to_error(failure, post.sent_session());
  if (const std::string why = post.not_repeated(); !why.empty())
    error =
        bh::make_error(error.code, std::string(bh::text(error)) + "; " + why, error.retry_after_ms);
  post_failed(post, error, &failure);
}

// `why` must not belong to the post, which ends here.
void Lane::session_lost(Post *post, const bh_error &error, const HttpFailure &why) {
  if (post != nullptr) post_failed(*post, error, &why);  // the server did not execute this request
  go_down(error, &why);
}

void Lane::go_down(const bh_error &error, const HttpFailure *why) {
  if (wire_ == Wire::closed || wire_ == Wire::down) return;
  session_.clear();  // prevents a DELETE
  wire_ = Wire::down;
  halt();
  queue_.clear();
  queued_bytes_ = 0;
  const ReportedFailure failure(error, why);
  context_.up->lane_down(context_.host.ctx(), handle_, failure.get());
}

// ---- other functions called by the host ---------------------------------------------------------

void Lane::ready(std::string_view revision) {
  if (wire_ == Wire::closed || wire_ == Wire::down) return;
  const bool fit =
      revision.size() <= 64 &&
      std::all_of(revision.begin(), revision.end(), [](char c) { return c >= 0x21 && c <= 0x7E; });
  if (fit) revision_.assign(revision);
  if (stateless()) forget_initialize();
  build_heads();
  if (stateless()) return send_queued();
  if (wire_ != Wire::streamable) return;
  want_stream_ = true;
  if (!expect_initialized_ && held_by_ == nullptr) open_stream();
}

void Lane::abandon(std::uint64_t exchange) {
  if (exchange == 0) return;
  for (Post *post : posts_) {
    if (post->exchange() != exchange) continue;
    return post_finished(*post);
  }
  for (auto it = queue_.begin(); it != queue_.end(); ++it) {
    if (it->exchange != exchange) continue;
    queued_bytes_ -= it->size();
    queue_.erase(it);
    return;
  }
}

bool Lane::sweep(std::uint64_t now_ns) {
  for (std::size_t i = posts_.size(); i-- > 0;) {
    if (i < posts_.size() && posts_[i]->overdue(now_ns)) post_finished(*posts_[i]);
  }
  return !posts_.empty();
}

// ---- shutdown -----------------------------------------------------------------------------------

void Lane::close() {
  const bool ends_session = wire_ == Wire::streamable && !session_.empty();
  wire_ = Wire::closed;
  halt();
  queue_.clear();
  if (!ends_session || !delete_session()) return finish_close();
  start_timer<&Lane::close_timer_, &Lane::finish_close>(context_.settings.delete_wait_ms);
}

// Starts the DELETE request for the session. The request of a stateless lane has no
// MCP-Protocol-Version header, because the lane's revision is not that of the session.
bool Lane::delete_session() {
  const std::string text = head("DELETE", definition_.url.target, !stateless());
  HttpRequest request;
  request.method = Method::del;
  request.head = text;
  request.target = definition_.url.target;
  return route_->start(request, session_delete_, &session_delete_.call, nullptr) == BH_OK;
}

void Lane::SessionDelete::over() {
  call = nullptr;
  if (lane.wire_ == Wire::closed) lane.finish_close();
}

void Lane::finish_close() {
  halt();
  context_.lane_finished(this);
}

void Lane::restart(bh_timer *timer, std::uint64_t ms, bh::Callback call) {
  context_.host.timer_cancel(*timer);
  *timer = context_.host.timer_start(ms, call);
}

}  // namespace connector_http
