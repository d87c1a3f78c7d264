// Selects the proxy for an origin from the environment, by curl's rules: http_proxy (only in lower
// case, as HTTP_PROXY can be set by a CGI request), https_proxy/HTTPS_PROXY, all_proxy/ALL_PROXY,
// and no_proxy/NO_PROXY. Loopback addresses never use a proxy.
#pragma once

#include "url.hpp"

namespace connector_http {

// `get` reads a variable (getenv in the plugin, a table in the tests); null or "" means unset.
bool wants_proxy(const Url &url, const char *(*get)(const char *name));

}  // namespace connector_http
