// Sends one POST for a lane and receives the response, which is either JSON or an event stream. If
// a stream is interrupted before the JSON-RPC response arrives, it is resumed with a GET. The
// Context reuses Post objects.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "backend.hpp"
#include "body_buffer.hpp"
#include "bulkhead/abi/host.h"
#include "failure.hpp"
#include "lane_headers.hpp"
#include "sse.hpp"

namespace connector_http {

class Lane;
struct Context;

class Post final : public HttpSink {
 public:
  explicit Post(Context &context) : context_(context) {}

  // Prepares the POST for a message. `kind` is one of the BH_LANE_... constants. If http_sse is
  // true, the response body is ignored.
  void prepare(Lane &lane, std::uint32_t kind, std::uint64_t exchange, bool initialize,
               bool http_sse);
  // If start() succeeds, the lane is notified when the POST has finished. If it fails, nothing has
  // been sent.
  bh_status start(HttpRoute &route, const HttpRequest &request, bh_error *error);
  // Cancels the POST without notifying the host, and returns this object to the Context.
  void cancel() noexcept;

  std::uint64_t exchange() const noexcept { return exchange_; }
  std::uint32_t kind() const noexcept { return kind_; }
  bool initialize() const noexcept { return initialize_; }
  bool sent_session() const noexcept { return sent_session_; }
  bool resuming() const noexcept { return resuming_; }
  bool answered() const noexcept { return answered_; }
  // failure() returns the head of an error response. error_body() returns its body, truncated to
  // Settings::error_body_bytes.
  // NOLINTNEXTLINE(bugprone-unchecked-optional-access): the caller has checked.
  const HttpFailure &failure() const noexcept { return *failure_; }
  std::string_view error_body() const noexcept { return body_.view(); }
  // Returns true if the POST has taken too long and should be cancelled.
  bool overdue(std::uint64_t now_ns) const noexcept;

  // Stores a copy of a request that may be retried. deadline_ns is 0 if there is no deadline.
  void keep(std::string message, LaneHeaders headers, std::uint64_t deadline_ns);
  // Called when the server has rejected the request. If the request can be retried, schedules the
  // retry for the time given in Retry-After and returns true.
  bool repeat_later();
  // Returns the reason why a rejected request is not retried, as a suffix for an error message.
  // Returns an empty string if no reason applies.
  std::string not_repeated() const;

  std::size_t place = 0;  // index in Lane::posts_

  bool on_head(const ResponseHead &head) override;
  bool on_body(std::string_view piece) override;
  void on_done(const bh_error *error) override;
  void on_whole(const ResponseHead &head, std::string_view body) override;
  std::span<char> room() override;

 private:
  enum class Mode : std::uint8_t { none, json, events, error, ignored };

  bool success_head(const ResponseHead &head);
  bool reserve_for(const ResponseHead &head);
  bool refuse(bh_status code, const std::string &text);
  bool done_with();
  bool feed(std::string_view piece);
  void deliver_body();
  void stream_over(const bh_error *error);
  void resume();
  void repeat();
  void finish_failed(const bh_error &error);

  Context &context_;
  Lane *lane_ = nullptr;
  HttpCall *call_ = nullptr;
  std::uint64_t exchange_ = 0;
  std::uint64_t began_ns_ = 0, answered_ns_ = 0;
  std::uint32_t kind_ = 0;
  Mode mode_ = Mode::none;
  bool initialize_ = false, http_sse_ = false, sent_session_ = false;
  bool answered_ = false;  // the event stream has delivered the response
  bool resuming_ = false;
  bool progressed_ = false;  // an event has arrived since the last attempt
  bool feeding_ = false;     // feed() is running, so this object must not be reused yet
  bool released_ = false;
  std::uint32_t attempts_ = 0;
  bh_timer timer_ = 0;
  std::size_t expected_ = 0;  // body length; 0 if unknown
  std::size_t drained_ = 0;   // number of discarded body bytes
  BodyBuffer body_;
  SseParser sse_;
  std::optional<HttpFailure> failure_;
  struct Kept {
    std::string message;
    LaneHeaders headers;
    std::uint64_t deadline_ns = 0;
    std::uint32_t repeats = 0;
  };
  std::optional<Kept> kept_;
  bool waits_ = false;  // waiting for the time in Retry-After
};

}  // namespace connector_http
