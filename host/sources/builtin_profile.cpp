#include "sources/builtin_profile.hpp"

namespace bulkhead::program {

const std::string_view builtin_base = R"([connectors]
stdio = "connector-stdio"
http = "connector-http"
sse = "connector-http"

[services.http]
plugin = "http-client"

[policies.default]
plugin = "policy-rules"
)";

const std::string_view builtin_http_transport = R"(
[transports.http]
plugin = "transport-http"
listen = "127.0.0.1:8808"
path = "/mcp"
)";

const std::string_view builtin_stdio_transport = R"(
[transports.stdio]
plugin = "transport-stdio"
)";

// Some clients of `bulkhead stdio` list tools only once, at startup. The response to the first list
// request is therefore delayed until the servers are ready.
const std::string_view builtin_stdio_limits = R"(
[limits]
first_list_wait_ms = 8000
)";

// The transport's table must come last, because load_aggregator() appends `codec` to it. The
// aggregator's client does its own waiting for the servers, so first_list_wait_ms is 0. It also
// expects the gateway to exit within two seconds, so shutdown_grace_ms, which can apply more than
// once, is 250.
const std::string_view builtin_aggregator = R"(
[naming]
scheme = "capsem"
max_length = 256

[limits]
first_list_wait_ms = 0
in_flight_per_session = 4096
shutdown_grace_ms = 250

[transports.aggregator]
plugin = "transport-aggregator"
grants = ["control"]
)";

const std::string_view builtin_web_tools = R"(
[tools.http]
plugin = "builtin-http"
required = false
)";

const std::string_view builtin_file_tools = R"(
[tools.files]
plugin = "builtin-files"
required = false
)";

}  // namespace bulkhead::program
