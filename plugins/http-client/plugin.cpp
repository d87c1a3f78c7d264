// Provides an HTTP client to the other plugins of a compartment. No other plugin loads libcurl.
#include <curl/curl.h>

#include <memory>

#include "bulkhead/cpp/tables.hpp"
#include "client.hpp"

namespace http_client {

class HttpClient {
 public:
  static constexpr bh::Info info{
      .id = "http-client",
      .name = "HTTP client",
      .version = "0.1.0",
      .vendor = "Bulkhead",
      .config_schema = R"({"type":"object","additionalProperties":false})",
      .provides = {BH_EXT_HTTP_SERVICE}};

  explicit HttpClient(const bh_host *host) : host_(host) {}

  bh_status configure(bh_str, bh_error *error) {
    if (bh::Host(host_).has_reactor()) return BH_OK;
    return bh::fail(error, BH_E_UNSUPPORTED, "the host has no reactor");
  }

  bh_status start(bh_error *error) {
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
      return bh::fail(error, BH_E_INTERNAL, "libcurl could not be initialized");
    }
    initialised_ = true;
    client_ = std::make_unique<Client>(host_);
    if (client_->valid()) return BH_OK;
    return bh::fail(error, BH_E_INTERNAL, "libcurl could not be initialized");
  }

  void drain(std::uint64_t) noexcept { draining_ = true; }

  void stop() noexcept {
    client_.reset();
    if (initialised_) curl_global_cleanup();
    initialised_ = false;
  }

  const void *get_ext(const char *id) noexcept {
    return bh::is(id, BH_EXT_HTTP_SERVICE) ? bh::http_service_table<HttpClient>() : nullptr;
  }

  bh_status http_start(const bh_http_request &request, const bh_http_handler *handler, void *user,
                       bh_http_id *out, bh_error *error) {
    if (client_ == nullptr || draining_) {
      return bh::fail(error, BH_E_UNAVAILABLE, "the HTTP client is stopping");
    }
    return client_->start(request, handler, user, out, error);
  }

  bh_status http_cancel(bh_http_id id) {
    return client_ == nullptr ? static_cast<bh_status>(BH_STALE) : client_->cancel(id);
  }

 private:
  const bh_host *host_;
  std::unique_ptr<Client> client_;
  bool initialised_ = false, draining_ = false;
};

}  // namespace http_client

using HttpClient = http_client::HttpClient;
BH_PLUGIN(HttpClient)
