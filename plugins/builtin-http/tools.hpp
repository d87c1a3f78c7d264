// The list of tools.
#pragma once

#include <string>
#include <string_view>

#include "builtin-http/config.hpp"
#include "builtin-http/tool.hpp"

namespace builtin_http {

// The tool of this name if the configuration offers it; else nullptr.
const Tool *find_tool(const Config &config, std::string_view name);

// The answer to tools/list, a JSON array; includes echo.
std::string tool_definitions(const Config &config);

// The result of a call to echo.
std::string echo(std::string_view arguments);

}  // namespace builtin_http
