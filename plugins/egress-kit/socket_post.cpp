#include "egress-kit/socket_post.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

namespace egress {

namespace http = boost::beast::http;

namespace {

// The host is C: nothing may be thrown through it, be it for want of memory. What reads goes on at
// the next event, and else the timer ends it.
template <class F>
void guarded(F &&f) noexcept {
  bh::guarded(nullptr, [&] {
    f();
    return BH_OK;
  });
}

}  // namespace

struct SocketPost::Parser : http::response_parser<http::string_body> {
  std::string unread;  // Beast wants a head in one piece
};

SocketPost::SocketPost(const bh::Host &host, int fd, std::string message, std::uint64_t max_body,
                       std::uint64_t timeout_ms, Done done)
    : host_(host),
      fd_(fd),
      message_(std::move(message)),
      parser_(std::make_unique<Parser>()),
      done_(std::move(done)) {
  parser_->header_limit(max_head_bytes);
  parser_->body_limit(max_body);
  parser_->eager(true);
  timer_ = host_.timer_start(
      timeout_ms,
      [](void *arg) {
        auto &self = *static_cast<SocketPost *>(arg);
        self.timer_ = 0;
        guarded([&] { self.finish("timed out"); });
      },
      this);
  const auto ready = [](void *arg, std::int32_t, std::uint32_t events) {
    guarded([&] { static_cast<SocketPost *>(arg)->on_ready(events); });
  };
  // Where it cannot be watched, the timer says so.
  host_.watch(fd_, BH_FD_READ | BH_FD_WRITE, ready, this, &watch_);
}

SocketPost::~SocketPost() {
  host_.unwatch(watch_);
  host_.timer_cancel(timer_);
  ::close(fd_);
}

void SocketPost::on_ready(std::uint32_t events) {
  if ((events & BH_FD_WRITE) != 0 && written_ < message_.size() && !write()) return;
  // What ends the connection is read, too: the answer may have come before.
  if ((events & ~static_cast<std::uint32_t>(BH_FD_WRITE)) != 0) read();
}

// False: it has ended.
bool SocketPost::write() {
  const ssize_t n = ::send(fd_, message_.data() + written_, message_.size() - written_,
                           MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n < 0) {
    if (errno == EAGAIN || errno == EINTR) return true;
    // It may have answered before it read all, and closed.
    if (errno != EPIPE && errno != ECONNRESET) return finish(std::strerror(errno)), false;
    written_ = message_.size();
  } else {
    written_ += static_cast<std::size_t>(n);
  }
  if (written_ == message_.size()) host_.modify(watch_, BH_FD_READ);
  return true;
}

// False: it has ended.
bool SocketPost::read() {
  char bytes[16 << 10];
  const ssize_t n = ::recv(fd_, bytes, sizeof bytes, MSG_DONTWAIT);
  if (n < 0) {
    if (errno == EAGAIN || errno == EINTR) return true;
    return finish(std::strerror(errno)), false;
  }
  boost::system::error_code error;
  if (n == 0) {
    if (parser_->got_some()) parser_->put_eof(error);
    return finish(error || !parser_->is_done() ? "closed without a whole answer" : ""), false;
  }
  std::string &unread = parser_->unread;
  unread.append(bytes, static_cast<std::size_t>(n));
  while (!unread.empty() && !parser_->is_done()) {
    const std::size_t used = parser_->put(boost::asio::buffer(unread), error);
    unread.erase(0, used);
    if (error == http::error::need_more) {
      if (unread.size() > max_head_bytes) return finish("the answer's head is too large"), false;
      return true;
    }
    if (error) return finish("no HTTP answer that can be read: " + error.message()), false;
    if (used == 0) return true;
  }
  if (parser_->is_done()) return finish(""), false;
  return true;
}

void SocketPost::finish(std::string problem) {
  host_.unwatch(watch_);
  host_.timer_cancel(timer_);
  Answer answer;
  answer.problem = std::move(problem);
  if (parser_->is_header_done()) {
    const auto &message = parser_->get();
    answer.status = message.result_int();
    const auto header = message[http::field::retry_after];
    answer.retry_after.assign(header.data(), header.size());
  }
  if (answer.problem.empty()) answer.body = std::move(parser_->get().body());
  const Done done = std::move(done_);
  done(std::move(answer));  // may destroy this
}

}  // namespace egress
