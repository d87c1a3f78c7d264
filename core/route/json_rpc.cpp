#include "route/json_rpc.hpp"

#include <charconv>

#include "bulkhead/cpp/json_writer.hpp"
#include "mcp/scan.hpp"

namespace bulkhead {

std::string error_object(std::int32_t error_code, std::string_view text, std::string_view data) {
  std::string out = "{\"code\":" + std::to_string(error_code) + ",\"message\":";
  bh::json::append_quoted(&out, text);
  if (!data.empty()) out.append(",\"data\":").append(data);
  return out += '}';
}

std::string error_message(std::string_view id_token, std::int32_t error_code, std::string_view text,
                          std::string_view data) {
  std::string out = R"({"jsonrpc":"2.0",)";
  if (!id_token.empty()) out.append("\"id\":").append(id_token).append(",");
  return out.append("\"error\":").append(error_object(error_code, text, data)).append("}");
}

std::optional<std::int32_t> read_error_code(std::string_view error) {
  const std::string_view token = mcp::member(error, "code");
  const char *const last = token.data() + token.size();
  std::int32_t out = 0;
  const auto [end, failed] = std::from_chars(token.data(), last, out);
  if (token.empty() || failed != std::errc{} || end != last) return std::nullopt;
  return out;
}

}  // namespace bulkhead
