#pragma once

#include <string>
#include <string_view>

#include "builtin-http/config.hpp"
#include "builtin-http/tool.hpp"

namespace builtin_http {

// Returns the tool if the configuration offers it, and nullptr otherwise.
const Tool *find_tool(const Config &config, std::string_view name);

// Returns the JSON array for tools/list, including the echo tool.
std::string tool_definitions(const Config &config);

// Returns the result of a call to the echo tool.
std::string echo(std::string_view arguments);

}  // namespace builtin_http
