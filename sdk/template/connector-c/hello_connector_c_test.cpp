// Tests the plugin through the ABI, in a real event loop. The argument is the plugin's file. The
// test is the MCP server: it accepts the plugin's connections on a free port of 127.0.0.1.
#include <bulkhead/abi/ext/connector.h>
#include <bulkhead/testing/test_plugin.hpp>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <vector>

namespace {

using bh::testing::FakeHost;
using bh::testing::TestPlugin;

struct Seen {
  std::vector<std::string> messages;
  std::string down;
  int closed = 0;
};

Seen &seen_by(void *ctx) {
  return *static_cast<Seen *>(FakeHost::self(ctx).user);
}

bh_limits limits = bh::testing::limits();

const bh_host_connector host_connector{
    sizeof(bh_host_connector),
    0,
    &limits,
    [](void *ctx, bh_lane, std::uint64_t exchange, bh_str message) {
      BH_CHECK(exchange == 0);
      seen_by(ctx).messages.emplace_back(bh::view(message));
    },
    [](void *, bh_lane, std::uint64_t, const bh_lane_failure *) {},
    [](void *ctx, bh_lane, const bh_lane_failure *failure) {
      BH_CHECK(seen_by(ctx).down.empty());  // reported once
      seen_by(ctx).down = bh::text(*failure->error);
    },
    [](void *ctx, bh_lane) { ++seen_by(ctx).closed; }};

// The server's listening socket and its connection.
struct Server {
  int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int fd = -1;
  std::string url;

  Server() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto *const any = reinterpret_cast<sockaddr *>(&address);
    BH_CHECK(::bind(listener, any, size) == 0 && ::listen(listener, 4) == 0);
    BH_CHECK(::getsockname(listener, any, &size) == 0);
    url = "tcp-lines://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  ~Server() {
    ::close(listener);
    ::close(fd);
  }
  void accept() { BH_CHECK((fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC)) >= 0); }
  // Returns the bytes that the plugin has sent. The event loop runs until `size` bytes are there.
  std::string read(FakeHost &host, std::size_t size) const {
    std::string out;
    host.run_until(
        [&] {
          char bytes[4096];
          const ssize_t n = ::recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
          if (n > 0) out.append(bytes, static_cast<std::size_t>(n));
          return out.size() >= size;
        },
        5'000);
    return out;
  }
  void write(std::string_view text) const {
    BH_CHECK(::send(fd, text.data(), text.size(), MSG_NOSIGNAL) ==
             static_cast<ssize_t>(text.size()));
  }
};

bh_status open(TestPlugin &plugin, const std::string &url, void **lane) {
  const std::string definition = R"({"type":"tcp-lines","url":")" + url + "\"}";
  bh_lane_info info{};
  info.size = sizeof info;
  info.server = bh::str("test");
  info.definition = bh::str(definition);
  info.connect_timeout_ms = 5'000;
  return plugin.ext<bh_connector>(BH_EXT_CONNECTOR)
      ->lane_open(plugin.self(), 7, &info, lane, plugin.error());
}

bh_status send(TestPlugin &plugin, void *lane, std::string_view a, std::string_view b) {
  const bh_str parts[] = {bh::str(a), bh::str(b)};
  bh_lane_message message{};
  message.size = sizeof message;
  message.kind = BH_LANE_NOTIFICATION;
  message.part_count = 2;
  message.parts = parts;
  return plugin.ext<bh_connector>(BH_EXT_CONNECTOR)
      ->lane_send(plugin.self(), lane, &message, plugin.error());
}

}  // namespace

int main(int, char **argv) {
  FakeHost host;
  Seen seen;
  host.user = &seen;
  host.add_ext(BH_EXT_HOST_CONNECTOR, &host_connector);
  TestPlugin plugin(host, argv[1]);
  BH_CHECK(plugin.configure("{}") == BH_OK);
  BH_CHECK(plugin.start() == BH_OK);
  const auto *connector = plugin.ext<bh_connector>(BH_EXT_CONNECTOR);

  void *lane = nullptr;
  for (const char *url : {"", "tcp-lines://127.0.0.1", "tcp-lines://localhost:1"}) {
    BH_CHECK(open(plugin, url, &lane) == BH_E_INVALID);
    BH_CHECK(plugin.error_text().find("numeric address") != std::string_view::npos);
  }

  // A message that is sent before the connection is established is queued. Each message is one
  // line.
  Server server;
  BH_CHECK(open(plugin, server.url, &lane) == BH_OK);
  BH_CHECK(send(plugin, lane, "{\"id\":1,\r\n", "\"x\":2}") == BH_OK);
  server.accept();
  BH_CHECK(server.read(host, 17) == "{\"id\":1,  \"x\":2}\n");
  BH_CHECK(seen.down.empty());

  // Lines may arrive in pieces, and several at once.
  server.write("{\"a\":1}\r\n\n{\"b\"");
  BH_CHECK(host.run_until([&] { return seen.messages.size() == 1; }, 5'000));
  server.write(":2}\n{\"c\":3}\n");
  BH_CHECK(host.run_until([&] { return seen.messages.size() == 3; }, 5'000));
  BH_CHECK((seen.messages == std::vector<std::string>{R"({"a":1})", R"({"b":2})", R"({"c":3})"}));

  // A server that does not read fills the queue, which is limited.
  const std::string large(limits.write_queue_bytes / 4, 'x');
  bh_status status = BH_OK;
  for (int i = 0; i < 1'000 && status == BH_OK; ++i) status = send(plugin, lane, "{}", large);
  BH_CHECK(status == BH_E_LIMIT);
  connector->lane_close(plugin.self(), lane);
  BH_CHECK(host.run_until([&] { return seen.closed == 1; }, 5'000));

  // A lost connection is reported. The gateway then closes the lane.
  Server lost;
  BH_CHECK(open(plugin, lost.url, &lane) == BH_OK);
  lost.accept();
  ::shutdown(lost.fd, SHUT_RDWR);
  BH_CHECK(host.run_until([&] { return !seen.down.empty(); }, 5'000));
  BH_CHECK(send(plugin, lane, "{}", "") == BH_E_UNAVAILABLE);
  connector->lane_close(plugin.self(), lane);
  BH_CHECK(host.run_until([&] { return seen.closed == 2; }, 5'000));

  // stop() releases an open lane, and reports a lane that is being closed as closed.
  void *other = nullptr;
  BH_CHECK(open(plugin, server.url, &lane) == BH_OK);
  BH_CHECK(open(plugin, server.url, &other) == BH_OK);
  connector->lane_close(plugin.self(), other);
  plugin.stop();
  BH_CHECK(seen.closed == 3);
  return 0;
}
