// A lane's GET request: an event stream of messages that belong to no POST, or the receiving half
// of the old HTTP+SSE transport. Keeps the last event id and the server's retry time across
// attempts.
#pragma once

#include <cstdint>
#include <optional>

#include "backend.hpp"
#include "failure.hpp"
#include "sse.hpp"

namespace connector_http {

class Lane;
struct Context;

class EventStream final : public HttpSink {
 public:
  // Describes why a stream has ended.
  struct End {
    bool opened = false;      // the answer was a stream: 200 and text/event-stream
    bool progressed = false;  // an event arrived
    bool refused = false;     // the server answered with another status or type; see failure
    bool too_large = false;
    bh_error error{};  // text for users
  };

  EventStream(Context &context, Lane &lane) : context_(context), lane_(lane) {}

  // If BH_OK is returned, lane.stream_event() and lane.stream_ended() follow.
  bh_status start(HttpRoute &route, bh_error *error);
  void stop() noexcept;
  bool running() const noexcept { return call_ != nullptr; }
  void forget() noexcept { sse_.reset(limit()); }

  const std::optional<HttpFailure> &failure() const noexcept { return failure_; }
  std::optional<std::uint32_t> retry_ms() const noexcept { return sse_.retry_ms(); }

  bool on_head(const ResponseHead &head) override;
  bool on_body(std::string_view piece) override;
  void on_done(const bh_error *error) override;
  void on_whole(const ResponseHead &head, std::string_view body) override;

 private:
  std::uint64_t limit() const noexcept;
  void end(const bh_error &error);

  Context &context_;
  Lane &lane_;
  HttpCall *call_ = nullptr;
  SseParser sse_;
  End end_;
  std::optional<HttpFailure> failure_;
};

}  // namespace connector_http
