// The interface of HTTP clients for lanes. There are two implementations: the plugin's own HTTP/1.1
// client (http1.hpp) for plain http without a proxy, and the http-client plugin (service.hpp) for
// all other requests. Runs on the reactor thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "bulkhead/abi/core.h"
#include "http-codec/request_head.hpp"
#include "http-codec/response_head.hpp"
#include "http-codec/text.hpp"
#include "url.hpp"

namespace connector_http {

using bh::equal_ignoring_case;
using http_codec::Framing;
using http_codec::is_media_type;
using http_codec::Method;
using http_codec::ResponseHead;

struct HttpRequest {
  Method method = Method::post;
  // Request line and header lines, each ending with CRLF, without Content-Length and without the
  // blank line.
  std::string_view head;
  std::string_view target;
  const bh_str *parts = nullptr;  // the body, borrowed; read before start() returns
  std::uint32_t part_count = 0;
  std::uint64_t body_bytes = 0;
  // True if an idle connection must not be used, because the server may be closing it.
  bool fresh_connection = false;
};

// An in-flight request. Owned by the back end, which destroys it after on_done, on_whole, cancel(),
// or a callback that returned false.
class HttpCall {
 public:
  // Cancels the request. No more callbacks follow.
  virtual void cancel() = 0;

 protected:
  ~HttpCall() = default;
};

// Receives the response. A callback that returns false ends the request without on_done.
class HttpSink {
 public:
  virtual bool on_head(const ResponseHead &head) = 0;
  virtual bool on_body(std::string_view piece) = 0;
  // `error` is null if the complete body has arrived. BH_E_UNAVAILABLE means that the request was
  // not sent; BH_E_IO means that it may have been executed.
  virtual void on_done(const bh_error *error) = 0;
  // Receives a complete response instead of the callbacks above. The request has ended, and its
  // connection may already be in use again.
  virtual void on_whole(const ResponseHead &head, std::string_view body) = 0;
  // Returns a buffer for the next bytes of a body of known length; they are then passed to on_body.
  // If it is empty, the back end uses its own buffer.
  virtual std::span<char> room() { return {}; }

 protected:
  ~HttpSink() = default;
};

// A lane's access to one origin.
class HttpRoute {
 public:
  virtual ~HttpRoute() = default;
  // If BH_OK is returned, *out is set and callbacks follow later, never inside start(). On an
  // error, nothing was sent, no callback follows, and *out is unchanged.
  virtual bh_status start(const HttpRequest &request, HttpSink &sink, HttpCall **out,
                          bh_error *error) = 0;
  // Returns the number of unsent body bytes.
  virtual std::uint64_t unsent() const noexcept = 0;
};

}  // namespace connector_http
