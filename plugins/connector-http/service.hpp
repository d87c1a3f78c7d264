// Sends HTTP requests through the http-client plugin, which supports TLS, proxies and HTTP/2.
#pragma once

#include <memory>

#include "backend.hpp"
#include "bulkhead/abi/ext/draft/http.h"
#include "bulkhead/cpp/host.hpp"

namespace connector_http {

// Creates a route to the origin of `url`. `http` is the host's HTTP client table, whose functions
// are called with host.ctx().
std::unique_ptr<HttpRoute> make_service_route(const bh::Host &host, const bh_host_http *http,
                                              const Url &url, std::uint64_t connect_timeout_ms);

}  // namespace connector_http
