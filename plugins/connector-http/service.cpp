#include "service.hpp"

#include <charconv>
#include <string>
#include <vector>

#include "bulkhead/cpp/basics.hpp"

namespace connector_http {
namespace {

class ServiceRoute final : public HttpRoute {
 public:
  ServiceRoute(const bh::Host &host, const bh_host_http *http, const Url &url,
               std::uint64_t connect_timeout_ms)
      : host_(host), http_(http), origin_(url.origin()), connect_timeout_ms_(connect_timeout_ms) {}

  bh_status start(const HttpRequest &request, HttpSink &sink, HttpCall **out,
                  bh_error *error) override;
  // Always 0, because the service copies requests and limits how many are pending.
  std::uint64_t unsent() const noexcept override { return 0; }

 private:
  const bh::Host &host_;
  const bh_host_http *http_;
  std::string origin_;
  std::uint64_t connect_timeout_ms_;
};

// A request sent through the service. It is deleted at the end of the event loop iteration in which
// it completes, because one of its callbacks may be on the stack.
class ServiceCall final : public HttpCall {
 public:
  ServiceCall(const bh::Host &host, const bh_host_http *http, HttpSink &sink)
      : host_(host), http_(http), sink_(&sink) {}

  void cancel() override {
    http_->cancel(host_.ctx(), id_);
    finish();
  }

  static const bh_http_handler *handler() noexcept {
    static const bh_http_handler table{sizeof(bh_http_handler), 0, nullptr, head, body, done};
    return &table;
  }
  bh_http_id *id() noexcept { return &id_; }

 private:
  static bh_status head(void *user, std::uint32_t status, const bh_http_header *headers,
                        std::uint32_t n, bh_str) {
    auto *self = static_cast<ServiceCall *>(user);
    ResponseHead head = translate(status, headers, n);
    return self->status_for(self->sink_ != nullptr && self->sink_->on_head(head));
  }

  static bh_status body(void *user, bh_str piece) {
    auto *self = static_cast<ServiceCall *>(user);
    return self->status_for(self->sink_ != nullptr && self->sink_->on_body(bh::view(piece)));
  }

  static void done(void *user, const bh_error *error) {
    auto *self = static_cast<ServiceCall *>(user);
    HttpSink *sink = self->sink_;
    self->finish();
    if (sink != nullptr) sink->on_done(error);
  }

  // If a sink returned false, it must not be called again, but the service still calls done().
  bh_status status_for(bool wanted) noexcept {
    if (wanted) return BH_OK;
    sink_ = nullptr;
    return BH_E_CANCELLED;
  }

  static void take_length(std::string_view value, ResponseHead *head) noexcept {
    const char *const end = value.data() + value.size();
    const auto read = std::from_chars(value.data(), end, head->content_length);
    if (read.ec == std::errc() && read.ptr == end) head->framing = Framing::length;
  }

  static ResponseHead translate(std::uint32_t status, const bh_http_header *headers,
                                std::uint32_t n) {
    ResponseHead head;
    head.status = static_cast<std::uint16_t>(status);
    // The service detects the end of the body, so chunked framing is assumed unless the response
    // has a Content-Length.
    head.framing = status == 204 ? Framing::none : Framing::chunked;
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::string_view name = bh::view(headers[i].name), value = bh::view(headers[i].value);
      if (equal_ignoring_case(name, "content-type")) head.content_type = value;
      if (equal_ignoring_case(name, "mcp-session-id")) head.session_id = value;
      if (equal_ignoring_case(name, "www-authenticate")) head.add_challenge(value);
      if (equal_ignoring_case(name, "content-length")) take_length(value, &head);
      if (equal_ignoring_case(name, "retry-after")) head.retry_after = value;
      if (equal_ignoring_case(name, "location")) head.location = value;
    }
    return head;
  }

  void finish() noexcept {
    if (finished_) return;
    finished_ = true;
    sink_ = nullptr;
    host_.defer(bh::callback(this, [](ServiceCall &call) { delete &call; }));
  }

  const bh::Host &host_;
  const bh_host_http *http_;
  HttpSink *sink_;
  bh_http_id id_ = 0;
  bool finished_ = false;
};

// Parses the header lines that follow the request line. Omits Host, because the service adds it.
std::vector<bh_http_header> split_headers(std::string_view head) {
  std::vector<bh_http_header> out;
  std::size_t at = head.find("\r\n");
  while (at != std::string_view::npos && at + 2 < head.size()) {
    head.remove_prefix(at + 2);
    at = head.find("\r\n");
    const std::string_view line = head.substr(0, at);
    const std::size_t colon = line.find(": ");
    if (colon == std::string_view::npos) continue;
    if (equal_ignoring_case(line.substr(0, colon), "host")) continue;
    out.push_back({bh::str(line.substr(0, colon)), bh::str(line.substr(colon + 2))});
  }
  return out;
}

bh_status ServiceRoute::start(const HttpRequest &request, HttpSink &sink, HttpCall **out,
                              bh_error *error) {
  const std::string url = origin_ + std::string(request.target);
  const std::vector<bh_http_header> headers = split_headers(request.head);
  std::string joined;
  bh_str body{};
  if (request.part_count == 1) {
    body = request.parts[0];
  } else if (request.part_count > 1) {
    joined.reserve(request.body_bytes);
    for (std::uint32_t i = 0; i < request.part_count; ++i)
      joined.append(bh::view(request.parts[i]));
    body = bh::str(joined);
  }
  bh_http_request wanted{};
  wanted.size = sizeof wanted;
  wanted.method = bh::str(name_of(request.method));
  wanted.url = bh::str(url);
  wanted.headers = headers.data();
  wanted.header_count = static_cast<std::uint32_t>(headers.size());
  wanted.body = body;
  wanted.connect_timeout_ms = connect_timeout_ms_;
  auto call = std::make_unique<ServiceCall>(host_, http_, sink);
  const bh_status status =
      http_->start(host_.ctx(), &wanted, ServiceCall::handler(), call.get(), call->id(), error);
  if (status < 0) return status;
  *out = call.release();
  return BH_OK;
}

}  // namespace

std::unique_ptr<HttpRoute> make_service_route(const bh::Host &host, const bh_host_http *http,
                                              const Url &url, std::uint64_t connect_timeout_ms) {
  return std::make_unique<ServiceRoute>(host, http, url, connect_timeout_ms);
}

}  // namespace connector_http
