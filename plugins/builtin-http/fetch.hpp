// One call of fetch_http: request, redirects, conversion, answer.
//
// Lives on the reactor thread; only the conversion runs on the host's pool, on the body that no one
// else touches meanwhile. Every hop is judged like the first one: its domain by the policy before
// the request, its address by check_address before the connection.
#pragma once

#include <bulkhead/abi/ext/draft/http.h>
#include <bulkhead/cpp/host.hpp>

#include <atomic>
#include <functional>
#include <string>

#include "builtin-http/config.hpp"
#include "builtin-http/page.hpp"
#include "builtin-http/url.hpp"

namespace builtin_http {

inline constexpr unsigned max_redirects = 5;

class Fetch {
 public:
  // done(fetch, result) is called once, on the reactor thread, never inside start(); it may delete
  // the Fetch. config, host and http outlive it.
  using Done = std::function<void(Fetch &, std::string &&result)>;
  // For the record: each request, and each that was refused.
  using Note = std::function<void(const std::string &event)>;
  Fetch(const bh::Host &host, const bh_host_http &http, const Config &config, Note note, Done done)
      : host_(host), http_(http), config_(config), note_(std::move(note)), done_(std::move(done)) {}
  ~Fetch() { abort(); }
  Fetch(const Fetch &) = delete;
  Fetch &operator=(const Fetch &) = delete;

  // deadline_ns: of the call; 0: none. The configured time-out counts, too.
  void start(const Url &url, const PageRequest &request, std::uint64_t deadline_ns);

  // The answer comes soon, and says so.
  void cancel();

  // Ends the request without an answer.
  void abort() noexcept;

  // Is a thread of the pool using this object?
  bool converting() const noexcept { return converting_; }

 private:
  static const bh_http_handler handler;

  void request();
  void answer_later(std::string problem);
  void later();
  void step();
  void follow();
  void convert();
  bool judge_url(std::string_view prefix);
  void note(const char *decision, std::string_view reason = {});

  bh_status on_address(std::string_view host, std::string_view address);
  bh_status on_head(std::uint32_t status, const bh_http_header *headers, std::uint32_t n);
  bh_status on_body(std::string_view piece);
  void on_done(const bh_error *error);

  const bh::Host &host_;
  const bh_host_http &http_;
  const Config &config_;
  Note note_;
  Done done_;

  Url url_;
  PageRequest page_;
  std::uint64_t deadline_ns_ = 0, asked_ns_ = 0;
  bool denied_ = false;  // the address that its host has
  unsigned redirects_ = 0;
  bh_http_id id_ = 0;
  bool running_ = false;     // on_done is owed
  bool scheduled_ = false;   // step() is owed
  bool converting_ = false;  // a thread of the pool is in this object
  std::atomic<bool> cancelled_{false};

  std::string problem_;   // a sentence; once set, it is the answer
  std::string location_;  // of a redirect
  std::uint32_t status_ = 0;
  std::string content_type_;
  std::string body_;
  std::string result_;
};

}  // namespace builtin_http
