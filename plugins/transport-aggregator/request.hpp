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

// Slices of the message's text.
struct Request {
  std::uint64_t id = 0;
  Method method = Method::list_servers;
  std::string_view target;     // the string token of call_tool's and get_prompt's name, of
                               // read_resource's uri
  std::string_view arguments;  // an object with members, or empty
  std::string_view servers;    // refresh: an array
};

struct RequestError {
  const char *what = nullptr;  // null: the request is fine
  bool has_id = false;         // request.id is set: somebody can be told
};

// `text` is valid JSON. Members that have no meaning here are ignored, two of one name are refused:
// who reads such a message another way would see another request.
RequestError parse_request(std::string_view text, Request *out);

}  // namespace transport_aggregator
