// Parses the requests of the aggregator protocol.
#pragma once

#include <cstdint>
#include <string_view>

namespace transport_aggregator {

enum class Method : std::uint8_t {
  list_servers,
  list_tools,
  list_resources,
  list_prompts,
  call_tool,
  read_resource,
  get_prompt,
  refresh,
  shutdown
};
std::string_view method_name(Method method) noexcept;

// A parsed request. The views refer to the text of the request.
struct Request {
  std::uint64_t id = 0;
  Method method = Method::list_servers;
  std::string_view target;     // JSON string: name (call_tool, get_prompt) or uri (read_resource)
  std::string_view arguments;  // an object with members, or empty
  std::string_view servers;    // an array; only for refresh
};

struct RequestError {
  const char *what = nullptr;  // null if the request is valid
  bool has_id = false;         // true if Request::id is set, so that an error reply can be sent
};

// Parses `text`, which must be valid JSON. Unknown members are ignored. Duplicates of known members
// are rejected, because parsers differ in which one they use.
RequestError parse_request(std::string_view text, Request *out);

}  // namespace transport_aggregator
