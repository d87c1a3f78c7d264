// connector-http: a connector plugin for upstream MCP servers over Streamable HTTP or HTTP+SSE.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "bulkhead/abi/ext/draft/http.h"
#include "bulkhead/cpp/tables.hpp"
#include "context.hpp"
#include "definition.hpp"
#include "lane.hpp"
#include "proxy_env.hpp"
#include "service.hpp"

namespace connector_http {

class ConnectorHttp {
 public:
  static constexpr bh::Info info{
      .id = "connector-http",
      .name = "HTTP connector",
      .version = "0.1.0",
      .vendor = "Bulkhead",
      .config_schema = R"({"type":"object","additionalProperties":false})",
      .provides = {BH_EXT_CONNECTOR}};

  explicit ConnectorHttp(const bh_host *host) : raw_(host) {}

  bh_status configure(bh_str, bh_error *error) {
    if (!bh::Host(raw_).has_reactor()) {
      return bh::fail(error, BH_E_UNSUPPORTED, "the host has no reactor");
    }
    up_ = static_cast<const bh_host_connector *>(raw_->get_ext(raw_->ctx, BH_EXT_HOST_CONNECTOR));
    if (up_ == nullptr || up_->limits == nullptr) {
      return bh::fail(error, BH_E_UNSUPPORTED, "the host does not support connectors");
    }
    return BH_OK;
  }

  bh_status start(bh_error *) {
    context_ = std::make_unique<Context>(raw_, up_, settings());
    return BH_OK;
  }

  void stop() noexcept { context_.reset(); }

  const void *get_ext(const char *id) noexcept {
    return bh::is(id, BH_EXT_CONNECTOR) ? bh::connector_table<ConnectorHttp>() : nullptr;
  }

  bh_status lane_open(bh_lane handle, const bh_lane_info &lane, void **out, bh_error *error) {
    Definition definition;
    bh_status status = parse_definition(bh::view(lane.definition), &definition, error);
    if (status != BH_OK) return status;
    const std::uint64_t connect_ms = lane.connect_timeout_ms != 0
                                         ? lane.connect_timeout_ms
                                         : context_->settings.connect_timeout_ms;
    std::unique_ptr<HttpRoute> route;
    status = make_route(definition.url, connect_ms, &route, error);
    if (status != BH_OK) return status;
    context_->lanes.push_back(std::make_unique<Lane>(*context_, handle,
                                                     std::string(bh::view(lane.server)),
                                                     std::move(definition), std::move(route)));
    *out = context_->lanes.back().get();
    return BH_OK;
  }

  bh_status lane_send(void *lane, const bh_lane_message &message, bh_error *error) {
    return static_cast<Lane *>(lane)->send(message, error);
  }
  void lane_ready(void *lane, bh_str revision) {
    static_cast<Lane *>(lane)->ready(bh::view(revision));
  }
  void lane_abandon(void *lane, std::uint64_t exchange) {
    static_cast<Lane *>(lane)->abandon(exchange);
  }
  void lane_close(void *lane) { static_cast<Lane *>(lane)->close(); }

 private:
  Settings settings() const {
    Settings s;
    const bh_limits &l = *up_->limits;
    s.message_bytes = l.message_bytes;
    s.header_bytes = l.header_bytes;
    s.write_queue_bytes = l.write_queue_bytes;
    s.connect_timeout_ms = l.connect_timeout_ms;
    s.delete_wait_ms = std::min(s.delete_wait_ms, l.shutdown_grace_ms);
    return s;
  }

  bh_status make_route(const Url &url, std::uint64_t connect_ms, std::unique_ptr<HttpRoute> *out,
                       bh_error *error) {
    const bool proxy =
        wants_proxy(url, [](const char *n) -> const char * { return std::getenv(n); });
    if (!url.tls && !proxy) {
      *out = context_->http1.route(url, connect_ms);
      return BH_OK;
    }
    const auto *http = context_->host.ext<bh_host_http>(BH_EXT_HOST_HTTP);
    if (http == nullptr) {
      const char *why = url.tls ? "https requires the plugin http-client, which is not loaded"
                                : "a proxy requires the plugin http-client, which is not loaded";
      return bh::fail(error, BH_E_UNSUPPORTED, why);
    }
    *out = make_service_route(context_->host, http, url, connect_ms);
    return BH_OK;
  }

  const bh_host *raw_;
  const bh_host_connector *up_ = nullptr;
  std::unique_ptr<Context> context_;
};

}  // namespace connector_http

using ConnectorHttp = connector_http::ConnectorHttp;
BH_PLUGIN(ConnectorHttp)
