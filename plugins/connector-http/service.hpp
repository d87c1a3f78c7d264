// Sends HTTP requests through the http-client plugin, which supports TLS, proxies and HTTP/2.
#pragma once

#include <memory>

#include "backend.hpp"
#include "bulkhead/abi/ext/draft/http.h"
#include "bulkhead/cpp/host.hpp"

namespace connector_http {

// `http` is the host's table of functions for this plugin. They are called with host.ctx().
std::unique_ptr<HttpRoute> make_service_route(const bh::Host &host, const bh_host_http *http,
                                              const Url &url, std::uint64_t connect_timeout_ms);

}  // namespace connector_http
