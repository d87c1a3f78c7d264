// Selects the proxy for an origin from the environment, by curl's rules: http_proxy (only in lower
// case, because a CGI request can set HTTP_PROXY), https_proxy/HTTPS_PROXY, all_proxy/ALL_PROXY,
// and no_proxy/NO_PROXY. A proxy is never used for loopback addresses.
#pragma once

#include "url.hpp"

namespace connector_http {

// `get` reads a variable: getenv in the plugin, a table in tests. Null or "" means that the
// variable is unset.
bool wants_proxy(const Url &url, const char *(*get)(const char *name));

}  // namespace connector_http
