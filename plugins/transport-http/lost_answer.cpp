#include "lost_answer.hpp"

#include <bulkhead/cpp/json_reader.hpp>

namespace transport_http {

std::string lost_answer(std::string_view answer) {
  const std::string_view id = bh::json::member(answer, "id");
  std::string out = "{\"jsonrpc\":\"2.0\",\"id\":";
  out.append(id.empty() ? "null" : id);
  out.append(",\"error\":{\"code\":-32000,\"message\":\"The request ran, but its response of ");
  out.append(std::to_string(answer.size()));
  out.append(
      " bytes was lost with the connection because it was too large to be buffered "
      "(limits.event_buffer_bytes)\"}}");
  return out;
}

}  // namespace transport_http
