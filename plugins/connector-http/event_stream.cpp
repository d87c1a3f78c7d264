#include "event_stream.hpp"

#include <string>
#include <utility>

#include "bulkhead/cpp/basics.hpp"
#include "context.hpp"
#include "lane.hpp"

namespace connector_http {

std::uint64_t EventStream::limit() const noexcept {
  return context_.settings.message_bytes;
}

bh_status EventStream::start(HttpRoute &route, bh_error *error) {
  end_ = End{};
  failure_.reset();
  sse_.restart();
  const std::string head = lane_.get_head(sse_.last_event_id());
  HttpRequest request;
  request.method = Method::get;
  request.head = head;
  request.target = lane_.url().target;
  request.fresh_connection = true;  // a stale connection would delay the stream
  const bh_status status = route.start(request, *this, &call_, error);
  if (status != BH_OK) call_ = nullptr;
  return status;
}

void EventStream::stop() noexcept {
  if (call_ != nullptr) std::exchange(call_, nullptr)->cancel();
}

bool EventStream::on_head(const ResponseHead &head) {
  end_.opened = head.status == 200 && is_media_type(head.content_type, "text/event-stream");
  if (end_.opened) {
    lane_.stream_opened();
    return true;
  }
  failure_ = describe(head, lane_.url());
  end_.refused = true;
  call_ = nullptr;
  bh_error error = head.status == 200
                       ? bh::make_error(BH_E_PROTOCOL, "GET did not return an event stream")
                       : to_error(*failure_, lane_.has_session());
  end(error);
  return false;
}

bool EventStream::on_body(std::string_view piece) {
  std::size_t at = 0;
  SseEvent event;
  for (;;) {
    switch (sse_.next(piece, &at, &event)) {
      case SseParser::Step::need_more:
        return true;
      case SseParser::Step::event:
        end_.progressed = true;
        lane_.stream_event(event);
        if (call_ == nullptr) return false;  // the callback stopped the stream
        break;
      case SseParser::Step::too_large:
        call_ = nullptr;
        end_.too_large = true;
        end(bh::make_error(BH_E_LIMIT,
                           "an event exceeds the limit of " + std::to_string(limit()) + " bytes"));
        return false;
    }
  }
}

void EventStream::on_done(const bh_error *error) {
  call_ = nullptr;
  end(error != nullptr ? *error : bh::make_error(BH_E_IO, "the event stream ended"));
}

// Called if the whole response arrived at once. During the callbacks, call_ points to a
// placeholder, because a null call_ means that a callback has called stop().
void EventStream::on_whole(const ResponseHead &head, std::string_view body) {
  struct Over final : HttpCall {
    void cancel() override {}
  } over;
  call_ = &over;
  if (on_head(head) && (body.empty() || on_body(body))) on_done(nullptr);
  if (call_ == &over) call_ = nullptr;
}

void EventStream::end(const bh_error &error) {
  end_.error = error;
  lane_.stream_ended(end_);
}

}  // namespace connector_http
