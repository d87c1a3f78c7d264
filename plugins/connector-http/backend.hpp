// Defines the interface through which lanes use HTTP clients. It has two implementations: the
// plugin's own HTTP/1.1 client (http1.hpp) for plain HTTP without a proxy, and the http-client
// plugin (service.hpp) for all other requests.
//
// Runs on the reactor thread.
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
  // Request line and header lines, each terminated by CRLF. Content-Length and the blank line are
  // omitted.
  std::string_view head;
  std::string_view target;
  const bh_str *parts = nullptr;  // body, borrowed until start() returns
  std::uint32_t part_count = 0;
  std::uint64_t body_bytes = 0;
  // If true, a new connection must be used, because the server may be closing an idle one.
  bool fresh_connection = false;
};

// An in-flight request. Owned by the HTTP client. The pointer is invalid after on_done(),
// on_whole(), cancel(), or a callback that returned false.
class HttpCall {
 public:
  // Cancels the request. No more callbacks follow.
  virtual void cancel() = 0;

 protected:
  ~HttpCall() = default;
};

// Receives the response to a request. If on_head() or on_body() returns false, the request is
// cancelled, and on_done() is not called.
class HttpSink {
 public:
  virtual bool on_head(const ResponseHead &head) = 0;
  virtual bool on_body(std::string_view piece) = 0;
  // Called when the request is complete. `error` is null on success. BH_E_UNAVAILABLE means that
  // the request was not sent. BH_E_IO means that the server may have executed the request.
  virtual void on_done(const bh_error *error) = 0;
  // Called instead of the functions above if the whole response arrived at once. The connection can
  // already be reused during the call.
  virtual void on_whole(const ResponseHead &head, std::string_view body) = 0;
  // Returns a buffer for the next bytes of a body of known length. These bytes are then passed to
  // on_body(). If the buffer is empty, the HTTP client uses its own buffer.
  virtual std::span<char> room() { return {}; }

 protected:
  ~HttpSink() = default;
};

// Sends a lane's requests to one origin.
class HttpRoute {
 public:
  virtual ~HttpRoute() = default;
  // Sends a request. On success, sets *out; the sink is called later, never within start(). On
  // error, nothing was sent, the sink is not called, and *out is unchanged.
  virtual bh_status start(const HttpRequest &request, HttpSink &sink, HttpCall **out,
                          bh_error *error) = 0;
  // Returns the number of bytes of accepted requests, including their heads, that have not been
  // written to a connection.
  virtual std::uint64_t unsent() const noexcept = 0;
};

}  // namespace connector_http
