// A transport plugin. Clients of the gateway's user connect to a Unix socket, and send and receive
// one JSON-RPC message per line. Each connection is one session.
//
// All functions that handle messages run on the gateway's reactor thread, one call at a time. The
// gateway may call send() and session_ended() inside deliver(), so a connection that is closed is
// destroyed only at the end of the event loop iteration.
#include <bulkhead/abi/ext/draft/listen.h>
#include <bulkhead/cpp/host.hpp>
#include <bulkhead/cpp/json.hpp>
#include <bulkhead/cpp/messages.hpp>
#include <bulkhead/cpp/plugin.hpp>
#include <bulkhead/cpp/tables.hpp>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

constexpr std::string_view schema_json = R"({
  "type":"object","additionalProperties":false,"required":["listen"],
  "properties":{"listen":{"type":"string","pattern":"^/.{1,106}$",
    "description":"must be the absolute path of a Unix socket, at most 107 bytes long"}}
})";

constexpr std::size_t read_bytes = 64u << 10;
constexpr std::uint64_t accept_pause_ms = 1'000;

class HelloTransportPlugin {
 public:
  static constexpr bh::Info info{.id = "hello-transport",
                                 .name = "hello-transport",
                                 .version = "1.0.0",
                                 .vendor = "Example",
                                 .config_schema = schema_json,
                                 .provides = {BH_EXT_TRANSPORT}};

  explicit HelloTransportPlugin(const bh_host *host) : host_(host) {}

  bh_status configure(bh_str json, bh_error *error) {
    up_ = host_.ext<bh_host_transport>(BH_EXT_HOST_TRANSPORT);
    sockets_ = host_.ext<bh_host_listen>(BH_EXT_HOST_LISTEN);
    if (up_ == nullptr || up_->limits == nullptr || sockets_ == nullptr || !host_.has_reactor()) {
      return bh::fail(error, BH_E_UNSUPPORTED,
                      "this host does not support transports or listening sockets");
    }
    path_ = bh::json::member_text(bh::view(json), "listen");
    if (!path_.starts_with('/') || path_.size() >= sizeof(sockaddr_un::sun_path) ||
        path_.find('\0') != std::string::npos) {
      return bh::fail(error, BH_E_INVALID,
                      "listen: must be the absolute path of a Unix socket, at most 107 bytes long");
    }
    endpoint_ = "unix:" + path_;
    return BH_OK;
  }
  bh_status start(bh_error *) { return BH_OK; }
  void stop() noexcept {
    stop_accepting();
    sweeping_ = true;  // nothing is deferred any longer
    for (const auto &each : connections_) close(*each);
    connections_.clear();
  }
  const void *get_ext(const char *id) noexcept {
    return bh::is(id, BH_EXT_TRANSPORT) ? bh::transport_table<HelloTransportPlugin>() : nullptr;
  }

  // The gateway creates the socket, with mode 0600, and removes its file.
  bh_status listen(bh_error *error) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    const bh_status opened = sockets_->open(host_.ctx(), &address, sizeof address,
                                            bh::str(endpoint_), &listener_, error);
    if (opened != BH_OK) return opened;
    const bh_status watched =
        host_.watch(listener_, BH_FD_READ,
                    bh::contained_fd_callback<&HelloTransportPlugin::accept>(this), &watch_);
    if (watched == BH_OK) return BH_OK;
    stop_accepting();
    return bh::fail(error, watched, "the gateway cannot watch the socket");
  }
  void stop_accepting() noexcept {
    host_.timer_cancel(pause_);
    host_.unwatch(watch_);
    if (listener_ >= 0) ::close(std::exchange(listener_, -1));
  }
  bh_str endpoint() const noexcept { return bh::str(endpoint_); }

  bh_status send(const bh_outgoing &message) {
    const auto at = std::find_if(connections_.begin(), connections_.end(), [&](const auto &each) {
      return each->fd >= 0 && each->session == message.session;
    });
    if (at == connections_.end()) return BH_STALE;
    Connection &it = **at;
    if (message.kind == BH_OUT_ANSWER && it.open > 0) --it.open;
    std::size_t size = 1;
    for (std::uint32_t i = 0; i < message.part_count; ++i) size += message.parts[i].n;
    if (it.out.size() + size > up_->limits->write_queue_bytes) {
      close(it);
      return BH_E_LIMIT;
    }
    const auto begin = static_cast<std::ptrdiff_t>(it.out.size());
    for (std::uint32_t i = 0; i < message.part_count; ++i) it.out += bh::view(message.parts[i]);
    // In JSON, line breaks occur only between tokens, so a space has the same meaning.
    std::replace_if(
        it.out.begin() + begin, it.out.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
    if (message.part_count > 0) it.out += '\n';  // otherwise, the client has cancelled the request
    flush(it);
    return BH_OK;
  }
  void session_ended(bh_session session, bh_str) {
    for (const auto &each : connections_) {
      if (each->fd < 0 || each->session != session) continue;
      each->session = 0;  // the host has closed it already
      flush(*each);
      close(*each);
    }
  }

 private:
  struct Connection {
    HelloTransportPlugin *plugin = nullptr;
    int fd = -1;
    bh_watch watch = 0;
    bh_timer stalled = 0;  // runs while the client does not read
    bh_session session = 0;
    std::uint64_t open = 0;  // requests whose response has not been sent
    bool input_ended = false;
    std::string in, out;  // the incomplete line that was received; the bytes that wait to be sent

    void on_event(std::uint32_t events) { plugin->on_event(*this, events); }
    void on_stalled() {
      stalled = 0;
      plugin->close(*this);
    }
  };

  void accept() {
    Connection &it = *connections_.emplace_back(std::make_unique<Connection>());
    it.plugin = this;
    it.fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (it.fd < 0) {
      const int why = errno;
      connections_.pop_back();
      if (why == EMFILE || why == ENFILE || why == ENOBUFS || why == ENOMEM) pause(why);
      return;
    }
    bh_peer peer{};
    peer.size = sizeof peer;
    peer.transport = bh::str("unix");
    bh_error error = bh::make_error();
    if (up_->session_open(host_.ctx(), &peer, &it.session, &error) != BH_OK) {
      host_.log(BH_LOG_WARN, "a client was rejected: " + std::string(bh::text(error)));
      it.session = 0;
      return close(it);
    }
    if (host_.watch(it.fd, BH_FD_READ, bh::contained_fd_callback<&Connection::on_event>(&it),
                    &it.watch) != BH_OK) {
      close(it);
    }
  }
  // Without a free descriptor, the socket would be reported as readable in every iteration.
  void pause(int why) {
    host_.log(BH_LOG_WARN, "accepting no clients for a second: " + bh::error_name(why));
    host_.modify(watch_, 0);
    pause_ = host_.timer_start(accept_pause_ms,
                               bh::contained_callback<&HelloTransportPlugin::resume>(this));
  }
  void resume() {
    pause_ = 0;
    host_.modify(watch_, BH_FD_READ);
  }

  void on_event(Connection &it, std::uint32_t events) {
    if ((events & BH_FD_READ) != 0) receive(it);
    if (it.fd >= 0 && (events & (BH_FD_READ | BH_FD_ERROR)) == BH_FD_ERROR) return close(it);
    if (it.fd >= 0) flush(it);
  }

  void receive(Connection &it) {
    const std::size_t before = it.in.size();
    it.in.resize(before + read_bytes);
    const ssize_t n = ::recv(it.fd, it.in.data() + before, read_bytes, 0);
    const int why = errno;
    it.in.resize(before + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    if (n < 0 && why != EAGAIN && why != EINTR) return close(it);
    if (n == 0) {  // requests in flight are still answered; see flush()
      it.input_ended = true;
      return up_->session_close(host_.ctx(), it.session, BH_SESSION_INPUT_ENDED);
    }
    std::size_t begin = 0;
    for (std::size_t end = it.in.find('\n', before); end != it.in.npos && it.fd >= 0;
         end = it.in.find('\n', begin)) {
      const std::string_view line = bh::json::trimmed({it.in.data() + begin, end - begin});
      begin = end + 1;
      if (!line.empty()) deliver(it, line);
    }
    it.in.erase(0, begin);
    if (it.fd >= 0 && it.in.size() > up_->limits->message_bytes) {
      host_.log(BH_LOG_WARN, "a client sent a message larger than limits.message_bytes");
      close(it);
    }
  }

  void deliver(Connection &it, std::string_view line) {
    const bh_incoming message = bh::incoming(it.session, 0, line);
    bh_delivery delivery{};
    delivery.size = sizeof delivery;
    ++it.open;  // send() counts the responses, which may be sent inside deliver()
    const bh_status status = up_->deliver(host_.ctx(), &message, &delivery);
    if (status == BH_OK && delivery.kind == BH_DELIVERED_NOTHING && it.open > 0) --it.open;
    if (status != BH_OK && it.fd >= 0) close(it);
  }

  // Sends as much as possible. Closes the connection after the last response if the client has
  // ended its input, and if the client reads nothing for write_stall_ms.
  void flush(Connection &it) {
    const ssize_t n =
        it.out.empty() ? 0 : ::send(it.fd, it.out.data(), it.out.size(), MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) return close(it);
    if (n > 0) {
      it.out.erase(0, static_cast<std::size_t>(n));
      host_.timer_cancel(it.stalled);
    }
    if (it.out.empty() && it.input_ended && it.open == 0) return close(it);
    if (!it.out.empty() && it.stalled == 0) {
      it.stalled = host_.timer_start(up_->limits->write_stall_ms,
                                     bh::contained_callback<&Connection::on_stalled>(&it));
    }
    std::uint32_t events = it.input_ended ? 0 : BH_FD_READ;
    if (!it.out.empty()) events |= BH_FD_WRITE;
    host_.modify(it.watch, events);
  }

  // Closes the connection and its session. sweep() destroys the connection later.
  void close(Connection &it) noexcept {
    if (it.fd < 0) return;
    host_.timer_cancel(it.stalled);
    host_.unwatch(it.watch);
    ::close(std::exchange(it.fd, -1));
    const bh_session session = std::exchange(it.session, 0);
    if (session != 0) up_->session_close(host_.ctx(), session, BH_SESSION_GONE);
    if (std::exchange(sweeping_, true)) return;
    host_.defer(bh::contained_callback<&HelloTransportPlugin::sweep>(this));
  }
  void sweep() {
    sweeping_ = false;
    std::erase_if(connections_, [](const auto &each) { return each->fd < 0; });
  }

  const bh::Host host_;
  const bh_host_transport *up_ = nullptr;
  const bh_host_listen *sockets_ = nullptr;
  std::string path_, endpoint_;
  int listener_ = -1;
  bh_watch watch_ = 0;
  bh_timer pause_ = 0;
  bool sweeping_ = false;
  std::vector<std::unique_ptr<Connection>> connections_;
};

}  // namespace

BH_PLUGIN(HelloTransportPlugin)
