// Sends HTTP requests through the http-client plugin (TLS, proxies, HTTP/2), which the host calls.
#pragma once

#include <memory>

#include "backend.hpp"
#include "bulkhead/abi/ext/draft/http.h"
#include "bulkhead/cpp/host.hpp"

namespace connector_http {

// `http` is the host's table for this plugin; its functions are called with host.ctx().
std::unique_ptr<HttpRoute> make_service_route(const bh::Host &host, const bh_host_http *http,
                                              const Url &url, std::uint64_t connect_timeout_ms);

}  // namespace connector_http
