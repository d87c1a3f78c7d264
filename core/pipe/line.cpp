#include "pipe/line.hpp"

#include "bulkhead/cpp/json_writer.hpp"
#include "bulkhead/cpp/text.hpp"
#include "mcp/for_each.hpp"
#include "mcp/json_names.hpp"
#include "mcp/scan.hpp"

namespace bulkhead::pipe {
namespace {

// Hosts accept messages up to this depth, and reject deeper ones themselves.
constexpr std::uint32_t max_depth = 1024;
constexpr std::size_t max_method_bytes = 100;

struct Members {
  std::string_view id, method, result, error;
};

bool is_object(std::string_view text) noexcept {
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  return start != std::string_view::npos && text[start] == '{';
}

}  // namespace

Line classify(std::string_view text) noexcept {
  if (!is_object(text) || !mcp::valid_json(text, max_depth)) return {};
  Members members;
  mcp::for_each_member(text, [&members](std::string_view key, std::string_view value) {
    const std::string_view name = key.substr(1, key.size() - 2);
    if (mcp::json::same_text(name, "id")) members.id = value;
    if (mcp::json::same_text(name, "method")) members.method = value;
    if (mcp::json::same_text(name, "result")) members.result = value;
    if (mcp::json::same_text(name, "error")) members.error = value;
  });
  Line line;
  line.id = members.id;
  line.method = members.method;
  line.has_result = !members.result.empty();
  if (line.id.empty()) {
    line.kind = LineKind::notification;
  } else if (line.method.empty() && (line.has_result || !members.error.empty())) {
    line.kind = LineKind::response;
  }
  return line;
}

std::string lost_answer(std::string_view id, std::string_view message) {
  std::string out = R"({"jsonrpc":"2.0","id":)";
  out += id.empty() ? std::string_view("null") : id;
  out += R"(,"error":{"code":-32001,"message":)";
  bh::json::append_quoted(&out, message);
  out += "}}";
  return out;
}

std::string method_name(std::string_view token) {
  if (token.size() < 2 || token.front() != '"') return "request";
  std::string scratch;
  return std::string(bh::cut_text(mcp::unquote(token, &scratch), max_method_bytes));
}

}  // namespace bulkhead::pipe
