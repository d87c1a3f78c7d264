// Runs one HTTP request in libcurl: sets the options and collects the response in callbacks.
//
// Owned by the Client. Runs on the reactor thread.
#pragma once

#include <curl/curl.h>

#include <cstdint>
#include <string>
#include <vector>

#include "bulkhead/abi/ext/draft/http.h"
#include "bulkhead/cpp/basics.hpp"

namespace http_client {

class Transfer {
 public:
  static constexpr std::size_t header_bytes_max = 64 << 10;
  static constexpr std::size_t headers_max = 256;
  static constexpr std::size_t request_headers_max = 128;
  static constexpr std::uint32_t redirects_max = 20;

  Transfer(CURL *easy, const bh_http_handler *handler, void *user) noexcept
      : easy_(easy), handler_(*handler), user_(user) {}
  ~Transfer();
  Transfer(const Transfer &) = delete;
  Transfer &operator=(const Transfer &) = delete;

  // Copies the request and sets all options. Returns an error if the request is invalid.
  bh_status prepare(const bh_http_request &request, bh_error *error);

  // Calls the handler's on_done with the result, unless cancel() was called.
  void finish(CURLcode result);
  // After this call, the handler is no longer called.
  void cancel() noexcept { cancelled_ = true; }
  bool cancelled() const noexcept { return cancelled_; }
  CURL *easy() const noexcept { return easy_; }

  std::uint64_t id = 0;

 private:
  struct Header {
    std::string name, value;
  };

  bh_status set_url(std::string_view url, bh_error *error);
  bh_status set_headers(const bh_http_request &request, bh_error *error);
  void set_body(const bh_http_request &request);
  void set_bounds(const bh_http_request &request);
  void set_network(const bh_http_request &request);

  static std::size_t on_header(char *p, std::size_t size, std::size_t n, void *self);
  static std::size_t on_write(char *p, std::size_t size, std::size_t n, void *self);
  static std::size_t on_read(char *p, std::size_t size, std::size_t n, void *self);
  static int on_seek(void *self, curl_off_t offset, int origin);
  static curl_socket_t on_open(void *self, curlsocktype purpose, curl_sockaddr *address);
  static int on_ready(void *self, char *ip, char *local_ip, int port, int local_port);

  bool on_header_line(std::string_view line);
  bool end_of_head();
  bool redirect_is_safe();
  bool report_head();
  bool judge(const char *address, std::uint32_t port);
  bool stop_with(bh_status code, std::string_view text);
  std::string current_host() const;
  bh_error to_error(CURLcode result) const;

  CURL *easy_;
  const bh_http_handler handler_;
  void *const user_;
  curl_slist *headers_ = nullptr;
  std::string body_, host_;  // host_ is "name:port", for error messages
  std::size_t body_at_ = 0;
  std::uint64_t max_body_ = 0, received_ = 0;
  bool follow_ = false;
  bool private_headers_ = false;  // has headers that must not be sent to other origins
  bool cancelled_ = false;
  bool head_reported_ = false, in_head_ = false, any_head_ = false;
  std::uint32_t status_ = 0;
  std::size_t head_bytes_ = 0;
  std::vector<Header> head_;
  std::string judged_;  // the last accepted address
  bh_error stopped_{};  // the error of the callback that stopped the transfer, or BH_OK
  char text_[CURL_ERROR_SIZE] = {};
};

}  // namespace http_client
