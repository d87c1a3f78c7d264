// Decides whether requests to an origin use a proxy. Uses environment variables as curl does:
// http_proxy, https_proxy or HTTPS_PROXY, all_proxy or ALL_PROXY, and no_proxy or NO_PROXY.
// HTTP_PROXY is ignored because a CGI request can set it. Loopback addresses never use a proxy.
#pragma once

#include "url.hpp"

namespace connector_http {

// Returns true if requests to `url` must use a proxy. `get` returns the value of an environment
// variable: getenv in the plugin, a table in tests. Null or "" means that the variable is unset.
bool wants_proxy(const Url &url, const char *(*get)(const char *name));

}  // namespace connector_http
