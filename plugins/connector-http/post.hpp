// One POST of a lane with its answer: JSON, received at once or in pieces, or an event stream. A
// stream that ends before the answer is resumed by GET. Pooled by the Context.
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

  // Prepares a POST of `kind` (BH_LANE_...). With http_sse, the answer's body is not used.
  void prepare(Lane &lane, std::uint32_t kind, std::uint64_t exchange, bool initialize,
               bool http_sse);
  // If BH_OK is returned, the lane is notified when the POST ends. On an error, nothing was sent.
  bh_status start(HttpRoute &route, const HttpRequest &request, bh_error *error);
  // Ends the POST without notifying the host.
  void cancel() noexcept;

  std::uint64_t exchange() const noexcept { return exchange_; }
  std::uint32_t kind() const noexcept { return kind_; }
  bool initialize() const noexcept { return initialize_; }
  bool sent_session() const noexcept { return sent_session_; }
  bool resuming() const noexcept { return resuming_; }
  bool answered() const noexcept { return answered_; }
  // failure() returns the head of an error answer; error_body() returns at most
  // Settings::error_body_bytes of its body. NOLINTNEXTLINE(bugprone-unchecked-optional-access): the
  // caller has checked.
  const HttpFailure &failure() const noexcept { return *failure_; }
  std::string_view error_body() const noexcept { return body_.view(); }
  // Returns true if a sweep at now_ns should end this POST.
  bool overdue(std::uint64_t now_ns) const noexcept;

  // Keeps a request that may be retried. deadline_ns is 0 if the deadline is unknown.
  void keep(std::string message, LaneHeaders headers, std::uint64_t deadline_ns);
  // Called after a refusal. Returns true if the kept request will be retried after Retry-After.
  bool repeat_later();
  // Returns the reason why a refused request is not retried, as part of a sentence, or an empty
  // string.
  std::string not_repeated() const;

  std::size_t place = 0;  // index in the lane's list

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
  bool answered_ = false;  // the response arrived on the event stream
  bool resuming_ = false;
  bool progressed_ = false;  // an event arrived since the last attempt
  bool feeding_ = false;     // feed() is on the stack, so the object must not be reused yet
  bool released_ = false;
  std::uint32_t attempts_ = 0;
  bh_timer timer_ = 0;
  std::size_t expected_ = 0;  // length of the body; 0 if unknown
  std::size_t drained_ = 0;   // discarded bytes of a body
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
  bool waits_ = false;  // waiting for Retry-After
};

}  // namespace connector_http
