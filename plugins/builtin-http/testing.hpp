// Test fixture: runs the plugin with a fake HTTP client and fake pages in one event loop. Requests
// complete in the next event loop iteration.
#pragma once

#include <bulkhead/abi/ext/draft/event.h>
#include <bulkhead/abi/ext/draft/http.h>
#include <bulkhead/cpp/host.hpp>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "tool-kit/testing.hpp"

extern "C" const bh_entry *bh_static_entry_BuiltinHttp(void);

namespace builtin_http::testing {

using tool_kit::testing::Answer;
using tool_kit::testing::ToolsHost;

struct Page {
  std::uint32_t status = 200;
  std::string type = "text/plain";
  std::string body = {};
  std::string location = {};
  std::vector<std::pair<std::string, std::string>> headers = {};  // additional headers
  std::string address = "93.184.216.34";
  std::optional<bh_status> fails = {};  // status code of a failure after the body, if set
};

class Web : public ToolsHost {
 public:
  explicit Web(std::string_view config = "{}", bool client = true)
      : ToolsHost(bh_static_entry_BuiltinHttp(), "builtin-http", config) {
    table_.size = sizeof table_;
    table_.start = [](void *ctx, const bh_http_request *r, const bh_http_handler *h, void *user,
                      bh_http_id *out,
                      bh_error *error) { return of(ctx).start(*r, h, user, out, error); };
    table_.cancel = [](void *ctx, bh_http_id id) -> bh_status {
      return of(ctx).requests_.erase(id) == 1 ? BH_OK : BH_STALE;
    };
    if (client) host.add_ext(BH_EXT_HOST_HTTP, &table_);
    event_.size = sizeof event_;
    event_.event = [](void *ctx, bh_call, std::uint32_t kind, bh_str detail) {
      CHECK(kind == BH_RECORD_NET);
      of(ctx).events.emplace_back(bh::view(detail));
    };
    host.add_ext(BH_EXT_HOST_EVENT, &event_);
  }

  ~Web() { stop(); }  // ends the requests while their callbacks are valid

  std::map<std::string, Page> pages;
  std::vector<std::string> asked;          // requested URLs in order
  std::string method, sent, sent_headers;  // values of the last request
  std::uint32_t flags = 0;                 // flags of the last request
  unsigned connections = 0;                // number of connections to accepted addresses
  bool silent = false;                     // requests never complete
  bool stalls = false;                     // responses stop after their headers
  std::vector<std::string> events;         // recorded events

  std::size_t open() const { return requests_.size(); }
  Answer fetch(const std::string &more) { return call("fetch_http", "{" + more + "}"); }
  Answer url(const std::string &url) { return fetch("\"url\":\"" + url + "\""); }

 private:
  struct Request {
    Web *web;
    bh_http_id id;
    std::string url;
    const bh_http_handler *handler;
    void *user;
  };

  // FakeHost::user points to the base class ToolsHost, so the cast requires two steps.
  static Web &of(void *ctx) {
    return *static_cast<Web *>(static_cast<ToolsHost *>(bh::testing::FakeHost::self(ctx).user));
  }

  bh_status start(const bh_http_request &r, const bh_http_handler *h, void *user, bh_http_id *out,
                  bh_error *error) {
    asked.emplace_back(bh::view(r.url));
    flags = r.flags;
    method = bh::view(r.method);
    sent = bh::view(r.body);
    sent_headers.clear();
    for (std::uint32_t i = 0; i < r.header_count; ++i) {
      sent_headers.append(bh::view(r.headers[i].name)).append(": ");
      sent_headers.append(bh::view(r.headers[i].value)).append("\n");
    }
    if (r.max_redirects != 0 || r.total_timeout_ms == 0) {
      return bh::fail(error, BH_E_INVALID, "not the request that is expected");
    }
    *out = ++last_;
    const auto it = requests_.emplace(last_, Request{this, last_, asked.back(), h, user}).first;
    if (!silent) {
      bh::Host(host.host())
          .post([](void *arg) { answer(*static_cast<Request *>(arg)); }, &it->second);
    }
    return BH_OK;
  }

  static void answer(Request &request) {
    const Request r = request;
    Web &web = *r.web;
    const auto end = [&](bh_status code, std::string_view text) {
      if (web.requests_.erase(r.id) == 0) return;
      const bh_error error = bh::make_error(code, text);
      r.handler->on_done(r.user, code == BH_OK ? nullptr : &error);
    };
    const auto it = web.pages.find(r.url);
    if (it == web.pages.end()) return end(BH_E_UNAVAILABLE, "no such host");
    const Page &page = it->second;
    if (r.handler->check_address(r.user, bh::str("host"), bh::str(page.address), 80) != BH_OK) {
      return end(BH_E_DENIED, "denied");
    }
    ++web.connections;
    std::vector<bh_http_header> headers = {{bh::str("Content-Type"), bh::str(page.type)}};
    if (!page.location.empty()) headers.push_back({bh::str("LOCATION"), bh::str(page.location)});
    for (const auto &[name, value] : page.headers) {
      headers.push_back({bh::str(name), bh::str(value)});
    }
    if (r.handler->on_head(r.user, page.status, headers.data(),
                           static_cast<std::uint32_t>(headers.size()), bh::str(r.url)) != BH_OK) {
      return end(BH_E_CANCELLED, "stopped by on_head");
    }
    if (web.stalls) return;
    if (web.method == "HEAD") return end(BH_OK, "");
    for (std::size_t at = 0; at < page.body.size(); at += 1000) {
      const auto piece = std::string_view(page.body).substr(at, 1000);
      if (r.handler->on_body(r.user, bh::str(piece)) != BH_OK) {
        return end(BH_E_CANCELLED, "stopped by on_body");
      }
    }
    end(page.fails.value_or(BH_OK), "the connection broke");
  }

  bh_host_http table_{};
  bh_host_event event_{};
  bh_http_id last_ = 0;
  std::map<bh_http_id, Request> requests_;
};

// Returns the message of an error result, without the prefix "Error: ".
inline std::string error_of(const Answer &answer) {
  CHECK(answer.is_error());
  CHECK(answer.text().rfind("Error: ", 0) == 0);
  return answer.text().substr(7);
}

// Returns the text after the first empty line.
inline std::string chunk_of(const std::string &text) {
  return text.substr(text.find("\n\n") + 2);
}

}  // namespace builtin_http::testing
