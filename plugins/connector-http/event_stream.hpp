// A lane's GET request for an event stream. In Streamable HTTP, the stream carries messages that do
// not belong to a POST. In HTTP+SSE, it carries all messages from the server. The last event ID and
// the server's retry time are kept when the stream is reopened.
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
  // Describes how a stream ended.
  struct End {
    bool opened = false;      // the response was an event stream (200 and text/event-stream)
    bool progressed = false;  // at least one event was received
    bool refused = false;     // the response had another status or type; see failure()
    bool too_large = false;
    bh_error error{};  // error message for users
  };

  EventStream(Context &context, Lane &lane) : context_(context), lane_(lane) {}

  // Starts the GET request. On success, lane.stream_event() is called for each event and finally
  // lane.stream_ended(), unless stop() is called.
  bh_status start(HttpRoute &route, bh_error *error);
  void stop() noexcept;
  bool running() const noexcept { return call_ != nullptr; }
  // Clears the last event ID and the server's retry time.
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
