#include "builtin-http/net_event.hpp"

#include <bulkhead/cpp/json_writer.hpp>
#include <bulkhead/cpp/text.hpp>

namespace builtin_http {
namespace {

// With these limits, the event fits into BH_EVENT_BYTES even if all characters must be escaped.
constexpr std::size_t max_domain = 253, max_path = 256, max_reason = 100;

}  // namespace

std::string net_event(const Url &url, const NetEvent &event) {
  const std::string_view path = std::string_view(url.target).substr(0, url.target.find('?'));
  std::string out;
  bh::json::Writer json(&out);
  json.begin_object().member("domain", bh::cut_text(url.host.name, max_domain));
  json.member("port", url.port).member("decision", event.decision);
  json.member("method", event.method).member("path", bh::cut_text(path, max_path));
  if (event.status != 0) json.member("status_code", event.status);
  if (event.bytes_sent != 0) json.member("bytes_sent", event.bytes_sent);
  json.member("bytes_received", event.bytes_received).member("duration_ms", event.duration_ms);
  if (!event.reason.empty()) json.member("reason", bh::cut_text(event.reason, max_reason));
  json.end_object();
  return out;
}

}  // namespace builtin_http
