// What the lanes need of HTTP, with two makers behind it: the plugin's own HTTP/1.1 client
// (http1.hpp, plain http without a proxy) and the http-client plugin (service.hpp, everything
// else). Thread: all of it [io].
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

using http_codec::equal_ignoring_case;
using http_codec::Framing;
using http_codec::is_media_type;
using http_codec::Method;
using http_codec::ResponseHead;

struct HttpRequest {
  Method method = Method::post;
  // Request line and header lines, each ended by CRLF; without Content-Length and blank line.
  std::string_view head;
  std::string_view target;
  const bh_str *parts = nullptr;  // the body, borrowed; read before start() returns
  std::uint32_t part_count = 0;
  std::uint64_t body_bytes = 0;
  // Never an idle connection, which the server may be closing just now.
  bool fresh_connection = false;
};

// A request under way. Owned by the back end, which forgets it after on_done, on_whole, a callback
// that gave false, or cancel().
class HttpCall {
 public:
  // Ends it; no callback comes any more.
  virtual void cancel() = 0;

 protected:
  ~HttpCall() = default;
};

// Receives the response. A callback that returns false ends the call without on_done.
class HttpSink {
 public:
  virtual bool on_head(const ResponseHead &head) = 0;
  virtual bool on_body(std::string_view piece) = 0;
  // error: null when the whole body came. BH_E_UNAVAILABLE: not sent; BH_E_IO: may have run.
  virtual void on_done(const bh_error *error) = 0;
  // The whole response at once. The call is over and its connection already serves others.
  virtual void on_whole(const ResponseHead &head, std::string_view body) = 0;
  // Where the next bytes of a body of known length may be received directly; on_body then gets a
  // piece that lies there. Empty: through the back end's own buffer.
  virtual std::span<char> room() { return {}; }

 protected:
  ~HttpSink() = default;
};

// The way to one origin, held by a lane.
class HttpRoute {
 public:
  virtual ~HttpRoute() = default;
  // BH_OK: *out is set and callbacks follow later, never from inside start(). Else nothing has been
  // sent, no callback comes, and *out is as it was.
  virtual bh_status start(const HttpRequest &request, HttpSink &sink, HttpCall **out,
                          bh_error *error) = 0;
  // Bytes of bodies that the peer has not taken yet.
  virtual std::uint64_t unsent() const noexcept = 0;
};

}  // namespace connector_http
