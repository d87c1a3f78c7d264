// Decides whether requests to an origin use a proxy. Evaluates the same environment variables as
// curl: http_proxy, https_proxy or HTTPS_PROXY, all_proxy or ALL_PROXY, and no_proxy or NO_PROXY.
// HTTP_PROXY is ignored because a CGI request can set it. Loopback addresses never use a proxy.
#pragma once

#include "url.hpp"

namespace connector_http {

// Returns true if requests to `url` must use a proxy. `get` looks up an environment variable; it is
// getenv in the plugin and a table in tests. If `get` returns null or "", the variable is unset.
bool wants_proxy(const Url &url, const char *(*get)(const char *name));

}  // namespace connector_http
