// A lane to an upstream server over HTTP. It has a transport (Streamable HTTP or the older
// HTTP+SSE), a session, in-flight requests and an event stream.
//
// Owner: the Context, from lane_open until lane_closed. Runs on the reactor thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/abi/ext/connector.h"
#include "bulkhead/cpp/callback.hpp"
#include "definition.hpp"
#include "event_stream.hpp"
#include "lane_headers.hpp"
#include "post.hpp"

namespace connector_http {

struct Context;

class Lane {
 public:
  Lane(Context &context, bh_lane handle, std::string server, Definition &&definition,
       std::unique_ptr<HttpRoute> route);
  ~Lane();
  Lane(const Lane &) = delete;
  Lane &operator=(const Lane &) = delete;

  // The following functions are called by the host.
  bh_status send(const bh_lane_message &message, bh_error *error);
  void ready(std::string_view revision);
  void abandon(std::uint64_t exchange);
  void close();
  // Cancels all requests and streams without notifying the host.
  void halt() noexcept;
  bh_lane handle() const noexcept { return handle_; }
  // Cancels overdue POSTs; see Post::overdue(). Returns true if other POSTs are in flight.
  bool sweep(std::uint64_t now_ns);

  // The functions below are called by the lane's requests.
  const Url &url() const noexcept { return definition_.url; }
  HttpRoute &route() noexcept { return *route_; }
  bool has_session() const noexcept { return !session_.empty(); }
  std::string get_head(std::string_view last_event_id) const;
  std::string post_head(const LaneHeaders &headers) const;
  std::string_view post_target() const noexcept { return post_url_.target; }
  // Stores the session ID. Returns false if the ID is not a valid header value.
  bool take_session(std::string_view id);

  // Delivers a message from the server to the host. A batch is delivered as separate messages.
  void deliver(std::uint64_t exchange, std::string_view message);
  // Delivers the JSON response to a POST. If it contains no JSON-RPC response, the exchange fails.
  void deliver_answer(std::uint64_t exchange, std::string_view message);
  // Called before the response to `initialize` is delivered, or when that request ends without one.
  void initialize_answered();
  // Returns true if the lane has an event stream or will open one. Responses may arrive on it.
  bool listens() const noexcept { return want_stream_; }
  // Returns true if the server has no sessions (since revision 2026-07-28). Each POST is
  // independent, closing a response cancels its request, and streams are not resumed.
  bool stateless() const noexcept { return revision_ >= "2026-07-28"; }
  void post_finished(Post &post);
  // `why` is the HTTP response that caused the failure, or null.
  void post_failed(Post &post, const bh_error &error, const HttpFailure *why = nullptr);
  void post_refused(Post &post);  // the server returned an HTTP error status

  void stream_opened();
  void stream_event(const SseEvent &event);
  void stream_ended(const EventStream::End &end);

 private:
  enum class Wire : std::uint8_t {
    streamable,
    seeking,  // waiting for the `endpoint` event on the event stream of HTTP+SSE
    http_sse,
    down,
    closed
  };
  struct Queued {
    std::uint32_t kind, flags;
    std::uint64_t exchange, deadline_ns;
    std::string bytes;
    LaneHeaders headers;
    std::size_t size() const noexcept { return bytes.size() + headers.lines.size(); }
  };
  struct SessionDelete final : HttpSink {  // sends DELETE and ignores the response
    explicit SessionDelete(Lane &l) : lane(l) {}
    bool on_head(const ResponseHead &) override { return true; }
    bool on_body(std::string_view) override { return true; }
    void on_done(const bh_error *) override { over(); }
    void on_whole(const ResponseHead &, std::string_view) override { over(); }
    void over();
    Lane &lane;
    HttpCall *call = nullptr;
  };

  void build_heads();
  std::string head(std::string_view method, std::string_view target, bool revision = true) const;
  bh_status send(const bh_lane_message &message, LaneHeaders &&headers, bh_error *error);
  bh_status start_post(const bh_lane_message &message, const LaneHeaders &headers, bh_error *error);
  bh_status enqueue(const bh_lane_message &message, LaneHeaders &&headers, bh_error *error);
  void send_queued();
  void remove(Post &post) noexcept;
  void fail_exchange(std::uint64_t exchange, const bh_error &error,
                     const HttpFailure *why = nullptr);
  void go_down(const bh_error &error, const HttpFailure *why = nullptr);
  void session_lost(Post *post, const bh_error &error, const HttpFailure &why);
  bool is_lost_session(const Post &post) const;

  // Returns true if a response with this status does not show which revisions the server supports,
  // even if its body is a JSON-RPC error. This applies to authentication, overload and server
  // errors before the revision is known.
  bool hides_generation(std::uint16_t status) const noexcept {
    return revision_.empty() && (status == 401 || status == 403 || status == 429 || status >= 500);
  }

  bool may_fall_back(const Post &post) const;
  void fall_back(Post &post);
  bh_status seek_http_sse(bh_error *error);
  void seek_failed(const bh_error &error, const HttpFailure *why = nullptr);
  void forget_initialize();
  void seek_timed_out();
  void take_endpoint(std::string_view reference);

  void hold_for(Post *post);
  void release_hold();
  void open_stream();
  void reopen_stream(const EventStream::End &end);
  bool delete_session();
  void finish_close();
  // Starts or restarts the timer, which calls `fn` after `ms`.
  template <bh_timer Lane::*timer, void (Lane::*fn)()>
  void start_timer(std::uint64_t ms) {
    restart(&(this->*timer), ms, bh::callback(this, [](Lane &lane) {
      lane.*timer = 0;
      (lane.*fn)();
    }));
  }
  void restart(bh_timer *timer, std::uint64_t ms, bh::Callback call);

  Context &context_;
  const bh_lane handle_;
  const std::string server_;
  Definition definition_;
  std::unique_ptr<HttpRoute> route_;
  Wire wire_ = Wire::streamable;
  std::string session_, revision_;
  std::string post_head_;  // depends on session_, revision_ and post_url_
  std::string post_head_without_revision_;
  Url post_url_;
  std::vector<Post *> posts_;
  EventStream stream_;

  std::deque<Queued> queue_;
  std::uint64_t queued_bytes_ = 0;

  // The first notification after `initialize` must arrive before all later messages, because
  // servers reject requests that arrive before `initialized`. POSTs on other connections could
  // overtake it, so other messages wait until the server has responded to it, at most
  // Settings::hold_ms.
  bool expect_initialized_ = false;
  Post *held_by_ = nullptr;

  // The initialize request is kept until the server responds. It is sent again if the lane falls
  // back to HTTP+SSE.
  Queued initialize_{};
  bool initialize_kept_ = false;
  bh_error first_error_{};
  std::string first_body_;

  bool want_stream_ = false, stream_worked_ = false, refusal_logged_ = false;
  std::uint32_t stream_failures_ = 0;
  bh_timer stream_timer_ = 0, hold_timer_ = 0, close_timer_ = 0;
  SessionDelete session_delete_{*this};
};

}  // namespace connector_http
