// Sends one HTTP/1.1 request over a connected stream socket and reads the response.
//
// Used in compartments without network access, for which the supervisor connects to a Unix socket.
// libcurl 7.88 (Debian 12) is not suitable: given a connected socket, it tries to connect the
// socket again. Runs on the reactor thread.
#pragma once

#include <bulkhead/cpp/host.hpp>

#include <cstdint>
#include <functional>
#include <string>

#include "http-codec/response_reader.hpp"

namespace egress {

class SocketPost {
 public:
  struct Answer {
    std::uint32_t status = 0;  // 0 if there was no response
    std::string retry_after;   // value of the Retry-After header
    std::string body;
    std::string problem;  // empty if the response is complete
  };
  using Done = std::function<void(Answer &&)>;  // called once, never inside the constructor

  static constexpr std::uint32_t max_head_bytes = 64 << 10;

  // Takes ownership of `fd`, which must be non-blocking. `message` is the complete request: head
  // and body. `timeout_ms` is the time-out for sending the request and receiving the response. A
  // response body of more than `max_body` bytes is an error.
  SocketPost(const bh::Host &host, int fd, std::string message, std::uint64_t max_body,
             std::uint64_t timeout_ms, Done done);
  ~SocketPost();
  SocketPost(const SocketPost &) = delete;
  SocketPost &operator=(const SocketPost &) = delete;

 private:
  void on_ready(std::uint32_t events);
  bool write();
  bool read();
  bool consume(std::string_view in);
  void finish(std::string problem);

  const bh::Host &host_;
  int fd_;
  const std::string message_;
  std::size_t written_ = 0;
  const std::uint64_t max_body_;
  http_codec::ResponseReader reader_{max_head_bytes};
  Answer answer_;
  Done done_;
  bh_watch watch_ = 0;
  bh_timer timer_ = 0;
};

}  // namespace egress
