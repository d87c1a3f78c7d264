// Performs an HTTP request within limits, and follows redirects. The domain and address rules apply
// to every URL, including redirects.
//
// The host is checked before a request is sent. The IP address is checked before each connection,
// so DNS changes cannot circumvent the rules. Only GET and HEAD requests follow redirects, so a
// request with side effects is sent only to the URL that the caller specified.
//
// Runs on the reactor thread.
#pragma once

#include <bulkhead/abi/ext/draft/http.h>
#include <bulkhead/cpp/host.hpp>

#include <optional>
#include <span>
#include <string>

#include "builtin-http/cache.hpp"
#include "builtin-http/config.hpp"
#include "builtin-http/message.hpp"

namespace builtin_http {

inline constexpr unsigned max_redirects = 5;

class Fetcher {
 public:
  class User {
   public:
    // Called exactly once, but never within start(). `problem` is an error message, or empty if
    // response() is valid. The callback may delete the Fetcher.
    virtual void fetched(const std::string &problem) = 0;
    // Called for each request that was rejected, served from the cache, or sent (unless stop() was
    // called before the request ended). May be called within start(). `event` is the record; see
    // net_event.hpp.
    virtual void record(const std::string &event) = 0;

   protected:
    ~User() = default;
  };

  // All references must outlive the Fetcher.
  Fetcher(const bh::Host &host, const bh_host_http &http, const Config &config, Cache &cache,
          User &user)
      : host_(host), http_(http), config_(config), cache_(cache), user_(user) {}
  ~Fetcher() { stop(); }
  Fetcher(const Fetcher &) = delete;
  Fetcher &operator=(const Fetcher &) = delete;

  // `deadline_ns` is a time on the monotonic clock.
  void start(Request &&request, std::uint64_t deadline_ns);

  // Ends the fetch without calling fetched(). The Fetcher must not be deleted until the host has
  // run its deferred functions, which happens before the next event.
  void stop() noexcept;

  Response &response() { return response_; }
  std::uint64_t received() const { return response_.body.size(); }

  // ---- called by the host; see bh_http_handler ----
  bh_status check_address(std::string_view host, std::string_view address);
  bh_status on_head(std::uint32_t status, std::span<const bh_http_header> headers);
  bh_status on_body(std::string_view piece);
  void on_done(const bh_error *error);

 private:
  bool judge(std::string_view prefix);
  void send();
  bool use_cache(std::uint64_t now);
  void use_kept();
  void keep();
  bh_http_request describe(const std::string &url, std::vector<bh_http_header> *headers,
                           std::uint64_t now) const;
  void follow();
  void end_later(std::string problem);
  void later();
  void step();
  void note(const char *decision, std::string_view reason);

  bool read_redirect();
  std::string refused_head() const;
  std::string failure(const bh_error &error) const;

  const bh::Host &host_;
  const bh_host_http &http_;
  const Config &config_;
  Cache &cache_;
  User &user_;

  Request request_;
  Response response_;             // response of the last hop
  std::optional<Response> kept_;  // cached response to revalidate
  std::uint64_t deadline_ns_ = 0, asked_ns_ = 0;
  unsigned redirects_ = 0;
  bh_http_id id_ = 0;
  bool running_ = false;    // on_done() will be called
  bool scheduled_ = false;  // step() will be called
  bool stopped_ = false;
  bool denied_ = false;   // the address of the current connection was rejected
  bool enough_ = false;   // the rest of the response is not needed
  std::string problem_;   // error message; if not empty, the fetch fails
  std::string location_;  // redirect target to follow, or empty
};

}  // namespace builtin_http
