// Runs libcurl's multi interface on the host's reactor. The host's descriptor watches (bh_host_fd)
// report socket events, and one host timer implements all time-outs. libcurl's resolver threads are
// the only additional threads.
//
// libcurl must not be called from its own callbacks. Because handlers may start and cancel requests
// in callbacks, starts and cancellations are deferred until libcurl returns.
//
// Limits: at most requests_max concurrent requests (otherwise BH_E_LIMIT) and connections_kept idle
// connections.
#pragma once

#include <curl/curl.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "bulkhead/abi/ext/draft/http.h"
#include "bulkhead/cpp/host.hpp"
#include "transfer.hpp"

namespace http_client {

class Client {
 public:
  static constexpr std::size_t requests_max = 1024;
  static constexpr long connections_kept = 128;
  static constexpr std::size_t handles_kept = 32;

  explicit Client(const bh_host *host);
  ~Client();
  Client(const Client &) = delete;
  Client &operator=(const Client &) = delete;

  bool valid() const noexcept { return multi_ != nullptr; }
  bh_status start(const bh_http_request &request, const bh_http_handler *handler, void *user,
                  bh_http_id *out, bh_error *error);
  bh_status cancel(bh_http_id id);

 private:
  static int on_socket(CURL *easy, curl_socket_t fd, int what, void *self, void *socket);
  static int on_timer(CURLM *multi, long timeout_ms, void *self);
  static void on_event(void *self, std::int32_t fd, std::uint32_t events);
  static void on_timeout(void *self);

  void act(curl_socket_t fd, int events);
  void settle();
  void finish_ended();
  void release(Transfer *transfer) noexcept;
  CURL *acquire_handle();

  const bh::Host host_;
  CURLM *multi_;
  bh_timer timer_ = 0;
  bool inside_ = false;  // true during calls to libcurl
  std::map<curl_socket_t, bh_watch> watches_;
  std::map<bh_http_id, std::unique_ptr<Transfer>> transfers_;
  std::deque<Transfer *> waiting_;     // to be added, in this order, when libcurl returns
  std::vector<Transfer *> cancelled_;  // to be removed when libcurl returns
  std::vector<CURL *> handles_;
  bh_http_id last_id_ = 0;  // ids are not reused, so stale ids are detected
};

}  // namespace http_client
