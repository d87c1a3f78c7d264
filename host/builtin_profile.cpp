#include "builtin_profile.hpp"

namespace bulkhead::program {

const std::string_view builtin_base = R"([connectors]
stdio = "connector-stdio"
http = "connector-http"
sse = "connector-http"

[services.http]
plugin = "http-client"

[policies.default]
plugin = "policy-allow"
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

const std::string_view builtin_tools = R"(
[tools.http]
plugin = "builtin-http"
required = false

[tools.files]
plugin = "builtin-files"
required = false
)";

}  // namespace bulkhead::program
