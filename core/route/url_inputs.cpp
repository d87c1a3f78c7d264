#include "route/url_inputs.hpp"

#include "bulkhead/cpp/json_writer.hpp"
#include "mcp/for_each.hpp"

namespace bulkhead {

std::optional<std::string> url_inputs(std::string_view error) {
  if (!error.starts_with('{') || mcp::member(error, "code") != "-32042") return std::nullopt;
  const std::string_view data = mcp::member(error, "data");
  const std::string_view elicitations =
      data.starts_with('{') ? mcp::member(data, "elicitations") : std::string_view{};
  if (!elicitations.starts_with('[')) return std::nullopt;
  std::string out;
  std::size_t count = 0;
  bh::json::Writer json(&out);
  json.begin_object();
  const bool valid = mcp::for_each_item(elicitations, [&](std::string_view item) {
    if (!item.starts_with('{') || ++count > max_url_inputs) return false;
    const std::string_view message = mcp::member(item, "message"), url = mcp::member(item, "url");
    if (!message.starts_with('"') || !url.starts_with('"')) return false;
    json.key("url-" + std::to_string(count)).begin_object().member("method", "elicitation/create");
    json.key("params").begin_object().member("mode", "url");
    json.member("message", bh::json::Raw{message}).member("url", bh::json::Raw{url});
    json.end_object().end_object();
    return true;
  });
  json.end_object();
  if (!valid || count == 0) return std::nullopt;
  return out;
}

}  // namespace bulkhead
