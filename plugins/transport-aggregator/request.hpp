// The requests of the aggregator's protocol.
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

// The fields point into the text of the message.
struct Request {
  std::uint64_t id = 0;
  Method method = Method::list_servers;
  std::string_view target;     // string token of the name (call_tool, get_prompt) or the uri
                               // (read_resource)
  std::string_view arguments;  // an object with members, or empty
  std::string_view servers;    // refresh: an array
};

struct RequestError {
  const char *what = nullptr;  // null: the request is valid
  bool has_id = false;         // request.id is set: the error can be sent
};

// `text` is valid JSON. Unknown members are ignored. Duplicate members are rejected, since parsers
// do not agree on which value applies.
RequestError parse_request(std::string_view text, Request *out);

}  // namespace transport_aggregator
