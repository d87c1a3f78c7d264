// Sends one JSON POST request to an Endpoint, either through the compartment's HTTP client or over
// the endpoint's Unix socket.
//
// A redirect is returned as the response and is not followed. A Post is never retried; for a retry,
// the caller creates another Post. Runs on the reactor thread.
#pragma once

#include <bulkhead/abi/ext/draft/http.h>
#include <bulkhead/abi/ext/draft/listen.h>
#include <bulkhead/cpp/host.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "egress-kit/endpoint.hpp"
#include "egress-kit/socket_post.hpp"

namespace egress {

class Post {
 public:
  struct Answer {
    std::uint32_t status = 0;         // 0 if there was no response
    std::string body;                 // at most max_body bytes
    std::string problem;              // why the response is missing or incomplete; otherwise empty
    std::uint64_t retry_after_s = 0;  // Retry-After, at most an hour; 0 if missing or a date
  };
  // Called once, never inside start(). May destroy the Post.
  using Done = std::function<void(Answer &&)>;

  // `host` and `endpoint` must outlive the Post.
  Post(const bh::Host &host, const Endpoint &endpoint, std::uint64_t max_body, Done done)
      : host_(host), endpoint_(endpoint), max_body_(max_body), done_(std::move(done)) {}
  ~Post();
  Post(const Post &) = delete;
  Post &operator=(const Post &) = delete;

  void start(std::string body);

  // ---- called by the host; see bh_http_handler ----
  bh_status check_address(std::string_view host, std::string_view address);
  bh_status on_head(std::uint32_t status, std::span<const bh_http_header> headers);
  bh_status on_body(std::string_view piece);
  void on_done(const bh_error *error);

 private:
  struct Dial;

  void dial();
  void request();
  void request_over(int socket);
  // Returns false if f() threw an exception. In this case, end() is scheduled.
  template <class F>
  bool guard(F &&f);
  void end_later(std::string problem);
  void end();
  void take_retry_after(std::string_view value);

  const bh::Host &host_;
  const Endpoint &endpoint_;
  const std::uint64_t max_body_;
  Done done_;
  const bh_host_http *http_ = nullptr;
  std::string body_;
  Answer answer_;
  Dial *dial_ = nullptr;  // connects on a pool thread; may outlive the Post
  std::unique_ptr<SocketPost> over_socket_;
  bh_http_id id_ = 0;
  bool running_ = false;  // on_done has not been called yet
  bh_timer timer_ = 0;    // end() is pending
};

// If the endpoint has a Unix socket, announces it to the host. Must be called in the plugin's
// start(). Returns the error message, or an empty string on success.
std::string announce(const bh::Host &host, const Endpoint &endpoint);

}  // namespace egress
