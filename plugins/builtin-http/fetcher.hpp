// Gets one request answered: redirects, bounds, and the rules, which are asked at every hop.
//
// The host of each URL is judged before it is asked, its address before the connection
// (bh_http_handler.check_address: the address that is judged is the one connected to, whatever DNS
// says a moment later). Only GET and HEAD follow redirects; what would change something is not sent
// to another place than its caller named.
//
// Thread: the reactor's.
#pragma once

#include <bulkhead/abi/ext/draft/http.h>
#include <bulkhead/cpp/host.hpp>

#include <optional>
#include <string>

#include "builtin-http/cache.hpp"
#include "builtin-http/config.hpp"
#include "builtin-http/message.hpp"

namespace builtin_http {

inline constexpr unsigned max_redirects = 5;

class Fetcher {
 public:
  // Hears of the end, and of what goes on record meanwhile.
  class User {
   public:
    // Once, never inside start(). problem: a sentence; empty: response() is there. The Fetcher may
    // be deleted inside.
    virtual void fetched(const std::string &problem) = 0;
    // A request that was sent, or refused: see net_event.hpp.
    virtual void record(const std::string &event) = 0;

   protected:
    ~User() = default;
  };

  // All of them outlive the Fetcher.
  Fetcher(const bh::Host &host, const bh_host_http &http, const Config &config, Cache &cache,
          User &user)
      : host_(host), http_(http), config_(config), cache_(cache), user_(user) {}
  ~Fetcher() { stop(); }
  Fetcher(const Fetcher &) = delete;
  Fetcher &operator=(const Fetcher &) = delete;

  // deadline_ns: CLOCK_MONOTONIC.
  void start(Request &&request, std::uint64_t deadline_ns);

  // Ends it; fetched() does not come any more. The Fetcher must live until the host has run what it
  // was asked to defer, which is before the next event.
  void stop() noexcept;

  Response &response() { return response_; }
  std::uint64_t received() const { return response_.body.size(); }

 private:
  static const bh_http_handler handler;

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

  bh_status on_address(std::string_view host, std::string_view address);
  bh_status on_head(std::uint32_t status, const bh_http_header *headers, std::uint32_t n);
  bh_status on_body(std::string_view piece);
  void on_done(const bh_error *error);
  bool take_redirect();
  std::string refused_head() const;
  std::string failure(const bh_error &error) const;

  const bh::Host &host_;
  const bh_host_http &http_;
  const Config &config_;
  Cache &cache_;
  User &user_;

  Request request_;
  Response response_;             // of the last hop
  std::optional<Response> kept_;  // that the server is asked about: is it still the same?
  std::uint64_t deadline_ns_ = 0, asked_ns_ = 0;
  unsigned redirects_ = 0;
  bh_http_id id_ = 0;
  bool running_ = false;    // on_done is owed
  bool scheduled_ = false;  // step() is owed
  bool stopped_ = false;
  bool denied_ = false;   // the address that the host has
  bool enough_ = false;   // the rest of the answer is not wanted
  std::string problem_;   // a sentence; once set, it is the end
  std::string location_;  // of a redirect that is to be followed
};

}  // namespace builtin_http
