// A connector plugin. It connects to MCP servers over TCP, and sends and receives one JSON message
// per line. A server's address is its `url`, for example tcp-lines://127.0.0.1:9000.
//
// A lane is the conversation with one server. All functions run on the gateway's reactor thread,
// one call at a time. The gateway may call lane_send() and lane_close() inside up_->message() and
// up_->lane_down(), so a lane is never destroyed inside a function of the lane.
#include <bulkhead/cpp/host.hpp>
#include <bulkhead/cpp/json.hpp>
#include <bulkhead/cpp/messages.hpp>
#include <bulkhead/cpp/plugin.hpp>
#include <bulkhead/cpp/tables.hpp>
#include <bulkhead/cpp/url.hpp>

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

constexpr std::size_t read_bytes = 64u << 10;

class HelloConnectorPlugin {
 public:
  static constexpr bh::Info info{.id = "hello-connector",
                                 .name = "hello-connector",
                                 .version = "1.0.0",
                                 .vendor = "Example",
                                 .config_schema = R"({"type":"object"})",
                                 .provides = {BH_EXT_CONNECTOR}};

  explicit HelloConnectorPlugin(const bh_host *host) : host_(host) {}

  bh_status configure(bh_str, bh_error *error) {
    up_ = host_.ext<bh_host_connector>(BH_EXT_HOST_CONNECTOR);
    if (up_ == nullptr || up_->limits == nullptr || !host_.has_reactor()) {
      return bh::fail(error, BH_E_UNSUPPORTED,
                      "this host does not support connectors or has no reactor");
    }
    return BH_OK;
  }
  bh_status start(bh_error *) { return BH_OK; }
  void stop() noexcept {
    for (const auto &lane : lanes_) {
      release(*lane);
      if (lane->closing) up_->lane_closed(host_.ctx(), lane->handle);
    }
    lanes_.clear();
  }
  const void *get_ext(const char *id) noexcept {
    return bh::is(id, BH_EXT_CONNECTOR) ? bh::connector_table<HelloConnectorPlugin>() : nullptr;
  }

  bh_status lane_open(bh_lane handle, const bh_lane_info &server, void **out, bh_error *error) {
    Lane &lane = *lanes_.emplace_back(std::make_unique<Lane>());
    lane.plugin = this;
    lane.handle = handle;
    bh_status status =
        connect(lane, bh::json::member_text(bh::view(server.definition), "url"), error);
    if (status == BH_OK) {
      status = host_.watch(lane.fd, BH_FD_READ | BH_FD_WRITE,
                           bh::contained_fd_callback<&Lane::on_event>(&lane), &lane.watch);
      if (status != BH_OK) bh::fail(error, status, "the gateway cannot watch the socket");
    }
    if (status != BH_OK) {
      release(lane);
      lanes_.pop_back();
      return status;
    }
    lane.timer = host_.timer_start(server.connect_timeout_ms,
                                   bh::contained_callback<&Lane::on_connect_timeout>(&lane));
    *out = &lane;
    return BH_OK;
  }

  // Until the connection is established, messages are queued.
  bh_status lane_send(void *lane, const bh_lane_message &message, bh_error *error) {
    Lane &it = *static_cast<Lane *>(lane);
    if (it.fd < 0) return bh::fail(error, BH_E_UNAVAILABLE, "the connection is closed");
    std::size_t size = 1;
    for (std::uint32_t i = 0; i < message.part_count; ++i) size += message.parts[i].n;
    if (it.out.size() + size > up_->limits->write_queue_bytes) {
      return bh::fail(error, BH_E_LIMIT, "the server reads too slowly");
    }
    const auto begin = static_cast<std::ptrdiff_t>(it.out.size());
    for (std::uint32_t i = 0; i < message.part_count; ++i) it.out += bh::view(message.parts[i]);
    // In JSON, line breaks occur only between tokens, so a space has the same meaning.
    std::replace_if(
        it.out.begin() + begin, it.out.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
    it.out += '\n';
    if (it.connected) flush(it);
    return BH_OK;
  }

  void lane_ready(void *, bh_str) {}           // only needed for wires with headers
  void lane_abandon(void *, std::uint64_t) {}  // the server's response is ignored by the host
  void lane_close(void *lane) {
    Lane &it = *static_cast<Lane *>(lane);
    release(it);
    it.closing = true;
    host_.defer(bh::contained_callback<&Lane::on_closed>(&it));
  }

 private:
  struct Lane {
    HelloConnectorPlugin *plugin = nullptr;
    bh_lane handle = 0;
    int fd = -1;
    bh_watch watch = 0;
    bh_timer timer = 0;  // the connect timeout
    bool connected = false, closing = false;
    std::string in, out;  // the incomplete line that was received; the bytes that wait to be sent

    void on_event() { plugin->on_event(*this); }
    void on_connect_timeout() {
      timer = 0;
      plugin->down(*this, BH_E_UNAVAILABLE, "connecting timed out");
    }
    void on_closed() { plugin->destroy(*this); }
  };

  static bh_status connect(Lane &lane, std::string_view url, bh_error *error) {
    const auto parts = bh::split_url(url);
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    // Name resolution would block the reactor thread, so only numeric addresses are accepted.
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    if (!parts || !parts->has_port ||
        ::getaddrinfo(std::string(parts->host).c_str(), std::string(parts->port).c_str(), &hints,
                      &found) != 0) {
      return bh::fail(error, BH_E_INVALID,
                      "url: must be a numeric address with a port: tcp-lines://127.0.0.1:9000");
    }
    lane.fd = ::socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const bool begun =
        lane.fd >= 0 &&
        (::connect(lane.fd, found->ai_addr, found->ai_addrlen) == 0 || errno == EINPROGRESS);
    const int why = errno;
    ::freeaddrinfo(found);
    if (begun) return BH_OK;
    if (lane.fd >= 0) ::close(std::exchange(lane.fd, -1));
    return bh::fail(error, BH_E_UNAVAILABLE, "cannot connect: " + bh::error_name(why));
  }

  void on_event(Lane &lane) {
    if (!lane.connected) {
      int why = 0;
      socklen_t size = sizeof why;
      ::getsockopt(lane.fd, SOL_SOCKET, SO_ERROR, &why, &size);
      if (why != 0) return down(lane, BH_E_UNAVAILABLE, "cannot connect: " + bh::error_name(why));
      lane.connected = true;
      host_.timer_cancel(lane.timer);
      host_.modify(lane.watch, BH_FD_READ);
    }
    flush(lane);
    receive(lane);
  }

  // Sends as much as possible. A broken connection is also readable, so receive() reports it.
  void flush(Lane &lane) {
    if (lane.out.empty()) return;
    const ssize_t n = ::send(lane.fd, lane.out.data(), lane.out.size(), MSG_NOSIGNAL);
    if (n > 0) lane.out.erase(0, static_cast<std::size_t>(n));
    host_.modify(lane.watch, lane.out.empty() ? BH_FD_READ : BH_FD_READ | BH_FD_WRITE);
  }

  void receive(Lane &lane) {
    const std::size_t before = lane.in.size();
    lane.in.resize(before + read_bytes);
    const ssize_t n = ::recv(lane.fd, lane.in.data() + before, read_bytes, 0);
    const int why = errno;
    lane.in.resize(before + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    if (n == 0) return down(lane, BH_E_IO, "the server closed the connection");
    if (n < 0 && (why == EAGAIN || why == EINTR)) return;
    if (n < 0) return down(lane, BH_E_IO, "the connection is lost: " + bh::error_name(why));
    std::size_t begin = 0;
    for (std::size_t end = lane.in.find('\n', before); end != lane.in.npos && lane.fd >= 0;
         end = lane.in.find('\n', begin)) {
      const std::string_view line = bh::json::trimmed({lane.in.data() + begin, end - begin});
      begin = end + 1;
      if (!line.empty()) up_->message(host_.ctx(), lane.handle, 0, bh::str(line));
    }
    lane.in.erase(0, begin);
    if (lane.in.size() > up_->limits->message_bytes) {
      down(lane, BH_E_PROTOCOL, "a message of the server is larger than limits.message_bytes");
    }
  }

  // Releases the lane's resources. The gateway then calls lane_close().
  void down(Lane &lane, bh_status code, std::string_view text) {
    if (lane.fd < 0) return;
    release(lane);
    const bh_error error = bh::make_error(code, text);
    const bh_lane_failure failure = bh::lane_failure(error);
    up_->lane_down(host_.ctx(), lane.handle, &failure);
  }

  void release(Lane &lane) const noexcept {
    host_.timer_cancel(lane.timer);
    host_.unwatch(lane.watch);
    if (lane.fd >= 0) ::close(std::exchange(lane.fd, -1));
  }

  void destroy(Lane &lane) {
    const bh_lane handle = lane.handle;
    std::erase_if(lanes_, [&](const auto &each) { return each.get() == &lane; });
    up_->lane_closed(host_.ctx(), handle);
  }

  const bh::Host host_;
  const bh_host_connector *up_ = nullptr;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace

BH_PLUGIN(HelloConnectorPlugin)
