#include "egress-kit/socket_post.hpp"

#include <bulkhead/cpp/text.hpp>

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace egress {

namespace {

// No exception may cross the host's C interface. If memory is exhausted, the request continues at
// the next event or times out.
template <class F>
void guarded(F &&f) noexcept {
  bh::guarded(nullptr, [&] {
    f();
    return BH_OK;
  });
}

}  // namespace

SocketPost::SocketPost(const bh::Host &host, int fd, std::string message, std::uint64_t max_body,
                       std::uint64_t timeout_ms, Done done)
    : host_(host),
      fd_(fd),
      message_(std::move(message)),
      max_body_(max_body),
      done_(std::move(done)) {
  timer_ = host_.timer_start(timeout_ms, bh::callback(this, [](SocketPost &self) {
                               self.timer_ = 0;
                               guarded([&] { self.finish("timed out"); });
                             }));
  const auto ready = bh::fd_callback(this, [](SocketPost &self, std::uint32_t events) {
    guarded([&] { self.on_ready(events); });
  });
  // If the descriptor cannot be watched, the request times out.
  host_.watch(fd_, BH_FD_READ | BH_FD_WRITE, ready, &watch_);
}

SocketPost::~SocketPost() {
  host_.unwatch(watch_);
  host_.timer_cancel(timer_);
  ::close(fd_);
}

void SocketPost::on_ready(std::uint32_t events) {
  if ((events & BH_FD_WRITE) != 0 && written_ < message_.size() && !write()) return;
  // The socket is also read after error and hang-up events, because the response may have arrived
  // before them.
  if ((events & ~static_cast<std::uint32_t>(BH_FD_WRITE)) != 0) read();
}

// Returns false if the request is finished.
bool SocketPost::write() {
  const ssize_t n = ::send(fd_, message_.data() + written_, message_.size() - written_,
                           MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n < 0) {
    if (errno == EAGAIN || errno == EINTR) return true;
    // The server may respond and close the connection before it has read the whole request.
    if (errno != EPIPE && errno != ECONNRESET) return finish(bh::error_name(errno)), false;
    written_ = message_.size();
  } else {
    written_ += static_cast<std::size_t>(n);
  }
  if (written_ == message_.size()) host_.modify(watch_, BH_FD_READ);
  return true;
}

// Returns false if the request is finished.
bool SocketPost::read() {
  char bytes[16 << 10];
  const ssize_t n = ::recv(fd_, bytes, sizeof bytes, MSG_DONTWAIT);
  if (n < 0) {
    if (errno == EAGAIN || errno == EINTR) return true;
    return finish(bh::error_name(errno)), false;
  }
  if (n == 0) {
    return finish(reader_.ends_with_connection()
                      ? ""
                      : "the connection was closed before the response was complete"),
           false;
  }
  return consume({bytes, static_cast<std::size_t>(n)});
}

// Returns false if the request is finished.
bool SocketPost::consume(std::string_view in) {
  using Result = http_codec::ResponseReader::Result;
  const http_codec::ResponseHead &head = reader_.head();
  const auto invalid = [this](std::string_view why) {
    finish("invalid HTTP response: " + std::string(why));
    return false;
  };
  const auto too_large = [this] {
    finish("the response body is larger than " + std::to_string(max_body_) + " bytes");
    return false;
  };
  std::string_view piece;
  for (;;) {
    switch (reader_.next(in, piece)) {
      case Result::more:
        return true;
      case Result::head:
        answer_.status = head.status;
        answer_.retry_after = head.retry_after;
        if (head.framing == http_codec::Framing::length && head.content_length > max_body_) {
          return too_large();
        }
        break;
      case Result::body:
        if (piece.size() > max_body_ - answer_.body.size()) return too_large();
        answer_.body.append(piece);
        break;
      case Result::done:
        return finish(""), false;
      case Result::invalid:
        return invalid(reader_.why());
      case Result::head_too_large:
        return finish("the response head is too large"), false;
    }
  }
}

void SocketPost::finish(std::string problem) {
  host_.unwatch(watch_);
  host_.timer_cancel(timer_);
  answer_.problem = std::move(problem);
  if (!answer_.problem.empty()) answer_.body.clear();
  const Done done = std::move(done_);
  done(std::move(answer_));  // may destroy this object
}

}  // namespace egress
