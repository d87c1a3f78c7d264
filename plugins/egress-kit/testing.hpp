// A fake HTTP client that stores requests until the test responds to them.
#pragma once

#include <bulkhead/abi/ext/draft/http.h>
#include <bulkhead/testing/fake_host.hpp>

#include <map>
#include <string>
#include <vector>

namespace egress::testing {

class FakeHttp {
 public:
  struct Request {
    std::string method, url, body;
    std::map<std::string, std::string> headers;
    std::uint32_t flags = 0;
    std::uint64_t total_timeout_ms = 0, max_body_bytes = 0;
    std::uint32_t max_redirects = 0;
    const bh_http_handler *handler = nullptr;
    void *user = nullptr;
    bool open = true;
  };

  // Adds the HTTP table to `host` and sets host.user to this object.
  explicit FakeHttp(bh::testing::FakeHost &host) {
    table_.size = sizeof table_;
    table_.start = [](void *ctx, const bh_http_request *r, const bh_http_handler *h, void *user,
                      bh_http_id *out,
                      bh_error *error) { return of(ctx).start(*r, h, user, out, error); };
    table_.cancel = [](void *ctx, bh_http_id id) -> bh_status {
      Request &request = of(ctx).requests.at(id - 1);
      if (!request.open) return BH_STALE;
      request.open = false;
      return BH_OK;
    };
    host.user = this;
    host.add_ext(BH_EXT_HOST_HTTP, &table_);
  }

  std::vector<Request> requests;
  std::string refuses;  // if not empty, start() fails with this error

  std::size_t open() const {
    std::size_t n = 0;
    for (const Request &one : requests) n += one.open ? 1 : 0;
    return n;
  }
  void answer(std::size_t i, std::uint32_t status, const std::string &body,
              std::vector<std::pair<std::string, std::string>> headers = {}) {
    const Request r = requests.at(i);
    std::vector<bh_http_header> list;
    for (const auto &[name, value] : headers) list.push_back({bh::str(name), bh::str(value)});
    const bh_status head = r.handler->on_head(
        r.user, status, list.data(), static_cast<std::uint32_t>(list.size()), bh::str(r.url));
    const bool whole = head == BH_OK && r.handler->on_body(r.user, bh::str(body)) == BH_OK;
    end(i, whole ? "" : "stopped by its user");
  }
  void end(std::size_t i, const std::string &problem) {
    const Request r = requests.at(i);
    requests.at(i).open = false;
    const bh_error error = bh::make_error(BH_E_IO, problem);
    r.handler->on_done(r.user, problem.empty() ? nullptr : &error);
  }

 private:
  static FakeHttp &of(void *ctx) {
    return *static_cast<FakeHttp *>(bh::testing::FakeHost::self(ctx).user);
  }
  bh_status start(const bh_http_request &r, const bh_http_handler *h, void *user, bh_http_id *out,
                  bh_error *error) {
    if (!refuses.empty()) return bh::fail(error, BH_E_UNAVAILABLE, refuses);
    Request kept{std::string(bh::view(r.method)),
                 std::string(bh::view(r.url)),
                 std::string(bh::view(r.body)),
                 {},
                 r.flags,
                 r.total_timeout_ms,
                 r.max_body_bytes,
                 r.max_redirects,
                 h,
                 user,
                 true};
    for (std::uint32_t i = 0; i < r.header_count; ++i) {
      kept.headers[std::string(bh::view(r.headers[i].name))] = bh::view(r.headers[i].value);
    }
    requests.push_back(std::move(kept));
    *out = requests.size();
    return BH_OK;
  }

  bh_host_http table_{};
};

}  // namespace egress::testing
