#include "builtin-http/net_event.hpp"

#include "tool-kit/results.hpp"

namespace builtin_http {
namespace {

// Limits such that all texts fit after escaping.
constexpr std::size_t max_domain = 253, max_path = 256, max_reason = 100;

std::string_view cut(std::string_view text, std::size_t most) {
  return text.substr(0, tool_kit::cut_at(text, most));
}

}  // namespace

std::string net_event(const Url &url, const NetEvent &event) {
  const std::string_view path = std::string_view(url.target).substr(0, url.target.find('?'));
  std::string out = R"({"domain":)";
  tool_kit::append_quoted(&out, cut(url.host.name, max_domain));
  out.append(R"(,"port":)").append(std::to_string(url.port));
  out.append(R"(,"decision":")").append(event.decision);
  out.append(R"(","method":")").append(event.method).append(R"(","path":)");
  tool_kit::append_quoted(&out, cut(path, max_path));
  if (event.status != 0) out += R"(,"status_code":)" + std::to_string(event.status);
  if (event.bytes_sent != 0) out += R"(,"bytes_sent":)" + std::to_string(event.bytes_sent);
  out += R"(,"bytes_received":)" + std::to_string(event.bytes_received);
  out += R"(,"duration_ms":)" + std::to_string(event.duration_ms);
  if (!event.reason.empty()) {
    out += R"(,"reason":)";
    tool_kit::append_quoted(&out, cut(event.reason, max_reason));
  }
  return out + "}";
}

}  // namespace builtin_http
