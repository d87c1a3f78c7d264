// A fixture for testing the plugin: a fake host, a script that replaces the core, and clients on
// real sockets.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/abi/ext/draft/resume.h"
#include "bulkhead/abi/ext/transport.h"
#include "bulkhead/abi/plugin.h"
#include "bulkhead/cpp/messages.hpp"
#include "bulkhead/testing/fake_host.hpp"

extern "C" const bh_entry *bh_static_entry_TransportHttp(void);

namespace transport_http::testing {

// Returns limits that a test can reach quickly.
inline bh_limits test_limits() {
  bh_limits l = bh::testing::limits();
  l.message_bytes = 16u << 20;
  l.header_bytes = 8u << 10;
  l.sessions = 64;
  l.event_buffer_bytes = 4096;
  l.write_queue_bytes = 24u << 20;
  return l;
}

// Runs the plugin on a fake host that follows a script. The text of a message selects the reaction:
// "initialize", "notify", "echo ...", "later", "progress", "status-400" ...
struct Rig {
  struct Delivered {
    bh_session session;
    std::uint64_t stream;
    std::string text;
    std::vector<std::string> headers{};  // "name: value"
    std::string principal{};             // set without a session
  };
  struct Closed {
    bh_session session;
    std::uint32_t how;
  };

  explicit Rig(const std::string &config = R"({"listen":"127.0.0.1:0"})",
               const bh_limits &with = test_limits(), const bh_host_resume *resume = nullptr)
      : limits(with) {
    host.user = this;
    make_table();
    host.add_ext(BH_EXT_HOST_TRANSPORT, &table);
    if (resume != nullptr) host.add_ext(BH_EXT_HOST_RESUME, resume);
    const bh_entry *entry = bh_static_entry_TransportHttp();
    bh_error error = bh::make_error();
    REQUIRE(entry->create("transport-http", host.host(), &plugin, &error) == BH_OK);
    status = plugin->configure(plugin->self, bh::str(config), &error);
    if (status == BH_OK) status = plugin->start(plugin->self, &error);
    if (status == BH_OK) {
      transport =
          static_cast<const bh_transport *>(plugin->get_ext(plugin->self, BH_EXT_TRANSPORT));
      status = transport->listen(plugin->self, &error);
    }
    fault = bh::text(error);
    if (status != BH_OK) return;
    endpoint = bh::view(transport->endpoint(plugin->self));
    const std::size_t colon = endpoint.rfind(':');
    if (colon != endpoint.npos) port = static_cast<std::uint16_t>(std::atoi(&endpoint[colon + 1]));
  }
  ~Rig() {
    if (plugin == nullptr) return;
    plugin->stop(plugin->self);
    CHECK(host.watches() == 0);
    CHECK(host.timers() == 0);
    plugin->destroy(plugin->self);
    CHECK(host.faults().empty());
  }

  bh_status send(std::uint32_t kind, bh_session session, std::uint64_t stream,
                 std::string_view text, std::uint32_t http_status = 0) {
    // Splits the text into two parts, because the core also sends messages in parts.
    const std::size_t half = text.size() / 2;
    const bh_str parts[2] = {bh::str(text.substr(0, half)), bh::str(text.substr(half))};
    bh_outgoing message{};
    message.size = sizeof message;
    message.kind = kind;
    message.session = session;
    message.stream = stream;
    message.http_status = http_status;
    message.part_count = 2;
    message.parts = parts;
    return transport->send(plugin->self, &message);
  }
  bh_status answer(const Delivered &d, std::string_view text) {
    return send(BH_OUT_ANSWER, d.session, d.stream, text);
  }
  bh_status event(const Delivered &d, std::string_view text) {
    return send(BH_OUT_EVENT, d.session, d.stream, text);
  }

  bh_limits limits;
  bh::testing::FakeHost host;
  const bh_plugin *plugin = nullptr;
  const bh_transport *transport = nullptr;
  bh_status status = BH_OK;
  std::string fault, endpoint;
  std::uint16_t port = 0;

  std::vector<Delivered> delivered;
  std::vector<Closed> closed;
  std::vector<std::pair<bh_session, std::uint64_t>> gone;
  std::map<bh_session, std::string> open;  // maps sessions to principals
  std::string bad_revision = "1999-01-01";
  bh_status refusal = BH_OK;  // result for messages without a session
  bh_host_transport table{};
  bh_session last_session = 0;
  std::function<void(bh_session)> on_close;  // called inside session_close

  static Rig &of(void *ctx) { return *static_cast<Rig *>(bh::testing::FakeHost::self(ctx).user); }

 private:
  void make_table() {
    table.size = sizeof table;
    table.limits = &limits;
    table.session_open = [](void *ctx, const bh_peer *peer, bh_session *out, bh_error *) {
      Rig &rig = of(ctx);
      if (rig.open.size() >= rig.limits.sessions) return bh_status{BH_E_LIMIT};
      *out = ++rig.last_session;
      rig.open[*out] = bh::view(peer->principal);
      return bh_status{BH_OK};
    };
    table.deliver = [](void *ctx, const bh_incoming *in, bh_delivery *out) {
      Delivered d{in->session, in->stream, std::string(bh::view(in->message))};
      for (const bh_header &header : bh::headers(*in)) {
        d.headers.push_back(std::string(bh::view(header.name)) + ": " +
                            std::string(bh::view(header.value)));
      }
      if (in->peer != nullptr) d.principal = bh::view(in->peer->principal);
      if ((in->flags & BH_INCOMING_HEADERS) == 0) d.headers.emplace_back("not shown");
      return of(ctx).deliver(d, *out);
    };
    table.stream_gone = [](void *ctx, bh_session session, std::uint64_t stream) {
      of(ctx).gone.emplace_back(session, stream);
    };
    table.session_close = [](void *ctx, bh_session session, std::uint32_t how) {
      of(ctx).closed.push_back({session, how});
      of(ctx).open.erase(session);
      if (of(ctx).on_close) of(ctx).on_close(session);
    };
    table.check_revision = [](void *ctx, bh_session, bh_str revision) -> bh_status {
      return bh::view(revision) == of(ctx).bad_revision ? BH_E_INVALID : BH_OK;
    };
    table.finished = [](void *) {};
  }

  bh_status deliver(const Delivered &d, bh_delivery &out) {
    if (d.session != 0 && !open.contains(d.session)) return BH_STALE;
    if (d.session == 0 && refusal != BH_OK) return refusal;
    if (d.session == 0 && d.text.find("initialize") != d.text.npos) return BH_E_SESSION_LOST;
    delivered.push_back(d);
    const auto is = [&](std::string_view word) { return d.text.find(word) != d.text.npos; };
    out.kind = is("notify") ? BH_DELIVERED_NOTHING : BH_DELIVERED_ANSWER;
    if (is("initialize")) out.flags = BH_DELIVERED_INITIALIZE;
    if (is("progress")) event(d, R"({"method":"progress"})");
    if (is("initialize") || is("now")) answer(d, R"({"result":"ok"})");
    if (is("echo")) answer(d, d.text);
    if (d.text.starts_with("status-")) {
      const auto code = static_cast<std::uint32_t>(std::atoi(&d.text[7]));
      send(BH_OUT_ANSWER, d.session, d.stream, R"({"error":1})", code);
    }
    return BH_OK;
  }
};

// A complete response.
struct Response {
  int status = 0;
  std::string head, body;
  bool chunked = false;

  std::string field(std::string_view name) const {
    const std::string key = "\r\n" + std::string(name) + ": ";
    const std::size_t at = head.find(key);
    if (at == head.npos) return {};
    const std::size_t start = at + key.size();
    return head.substr(start, head.find("\r\n", start) - start);
  }
  bool has(std::string_view part) const { return body.find(part) != body.npos; }
};

// A client connection. It reads only on request, so that a test can simulate a slow reader.
class Client {
 public:
  explicit Client(Rig &rig, int receive_buffer = 0) : rig_(rig) {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (receive_buffer > 0) {
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(rig.port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int r = ::connect(fd_, reinterpret_cast<sockaddr *>(&address), sizeof address);
    REQUIRE((r == 0 || errno == EINPROGRESS));
  }
  ~Client() { close(); }
  Client(const Client &) = delete;
  Client &operator=(const Client &) = delete;

  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

  // Sends the whole text, and runs the event loop while the server's buffers are full.
  void send(std::string_view text) {
    const bool sent = rig_.host.run_until(
        [&] {
          while (!text.empty()) {
            const ssize_t n = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
            if (n < 0 && errno != EAGAIN) return true;
            if (n <= 0) return false;
            text.remove_prefix(static_cast<std::size_t>(n));
          }
          return true;
        },
        20'000);
    REQUIRE(sent);
  }

  // Reads the available bytes. Returns true if the server has closed the connection.
  bool pump() {
    char buffer[65536];
    while (true) {
      const ssize_t n = ::recv(fd_, buffer, sizeof buffer, 0);
      if (n > 0) {
        in_.append(buffer, static_cast<std::size_t>(n));
      } else if (n == 0 || errno != EAGAIN) {
        return closed_ = true;
      } else {
        return false;
      }
    }
  }

  bool wait(const std::function<bool()> &done, int ms = 20'000) {
    return rig_.host.run_until(
        [&] {
          pump();
          return done();
        },
        ms);
  }
  bool wait_for(std::string_view part) {
    return wait([&] { return in_.find(part) != in_.npos; });
  }
  bool wait_closed() {
    return wait([&] { return closed_; });
  }

  Response response() {
    std::optional<Response> out;
    REQUIRE(wait([&] { return (out = take()).has_value(); }));
    return *out;  // checked by REQUIRE
  }
  Response request(std::string_view text) {
    send(text);
    return response();
  }

  std::string &bytes() { return in_; }

 private:
  std::optional<Response> take() {
    const std::size_t end = in_.find("\r\n\r\n");
    if (end == in_.npos) return std::nullopt;
    Response out;
    out.head = in_.substr(0, end + 2);
    out.status = std::atoi(out.head.c_str() + 9);
    std::size_t at = end + 4;
    if (!out.field("Transfer-Encoding").empty()) {
      out.chunked = true;
      while (true) {
        const std::size_t line = in_.find("\r\n", at);
        if (line == in_.npos) return std::nullopt;
        const std::size_t n = std::stoul(in_.substr(at, line - at), nullptr, 16);
        if (in_.size() < line + 2 + n + 2) return std::nullopt;
        out.body += in_.substr(line + 2, n);
        at = line + 2 + n + 2;
        if (n == 0) break;
      }
    } else {
      const std::string length = out.field("Content-Length");
      const std::size_t n = length.empty() ? 0 : std::stoul(length);
      if (in_.size() < at + n) return std::nullopt;
      out.body = in_.substr(at, n);
      at += n;
    }
    in_.erase(0, at);
    return out;
  }

  Rig &rig_;
  int fd_ = -1;
  bool closed_ = false;
  std::string in_;
};

inline std::string host_line(const Rig &rig) {
  return "Host: 127.0.0.1:" + std::to_string(rig.port) + "\r\n";
}

inline std::string post(const Rig &rig, std::string_view body, std::string_view session = {},
                        std::string_view more = {}, std::string_view path = "/mcp") {
  std::string text = "POST " + std::string(path) + " HTTP/1.1\r\n" + host_line(rig) +
                     "Content-Type: application/json\r\n"
                     "Accept: application/json, text/event-stream\r\n";
  if (!session.empty()) text += "Mcp-Session-Id: " + std::string(session) + "\r\n";
  text += more;
  text += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  return text += body;
}

inline std::string get(const Rig &rig, std::string_view session, std::string_view more = {},
                       std::string_view path = "/mcp", std::string_view method = "GET") {
  std::string text = std::string(method) + " " + std::string(path) + " HTTP/1.1\r\n" +
                     host_line(rig) + "Accept: text/event-stream\r\n";
  if (!session.empty()) text += "Mcp-Session-Id: " + std::string(session) + "\r\n";
  text += more;
  return text += "\r\n";
}

// Opens a session and returns its ID.
inline std::string initialize(Rig &rig, Client &client) {
  const Response r = client.request(post(rig, "initialize"));
  REQUIRE(r.status == 200);
  REQUIRE(r.field("Mcp-Session-Id").size() == 32);
  return r.field("Mcp-Session-Id");
}

}  // namespace transport_http::testing
