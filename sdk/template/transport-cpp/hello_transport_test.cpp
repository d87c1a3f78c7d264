// Tests the plugin through the ABI, in a real event loop. The argument is the plugin's file. The
// test is the gateway and the clients.
#include <bulkhead/abi/ext/transport.h>
#include <bulkhead/testing/test_plugin.hpp>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <vector>

namespace {

using bh::testing::FakeHost;
using bh::testing::TestPlugin;

struct Gateway {
  std::vector<std::string> messages;
  std::vector<bh_session> input_ended, gone;
  bh_session last = 0;
};

Gateway &gateway(void *ctx) {
  return *static_cast<Gateway *>(FakeHost::self(ctx).user);
}

bh_limits limits = bh::testing::limits();

// Notifications have no "id"; every other message gets a response.
bh_status deliver(void *ctx, const bh_incoming *message, bh_delivery *out) {
  BH_CHECK(message->session != 0 && message->session <= gateway(ctx).last);
  const std::string_view text = bh::view(message->message);
  gateway(ctx).messages.emplace_back(text);
  const bool request = text.find("\"id\"") != std::string_view::npos;
  out->kind = request ? BH_DELIVERED_ANSWER : BH_DELIVERED_NOTHING;
  return BH_OK;
}

bh_host_transport host_transport() {
  bh_host_transport out{};
  out.size = sizeof out;
  out.limits = &limits;
  out.session_open = [](void *ctx, const bh_peer *peer, bh_session *session,
                        bh_error *error) -> bh_status {
    BH_CHECK(bh::view(peer->transport) == "unix");
    if (gateway(ctx).last == limits.sessions) return bh::fail(error, BH_E_LIMIT, "too many");
    *session = ++gateway(ctx).last;
    return BH_OK;
  };
  out.deliver = deliver;
  out.session_close = [](void *ctx, bh_session session, std::uint32_t how) {
    Gateway &it = gateway(ctx);
    (how == BH_SESSION_INPUT_ENDED ? it.input_ended : it.gone).push_back(session);
  };
  return out;
}

bh_status send(TestPlugin &plugin, bh_session session, std::uint32_t kind, std::string_view text) {
  const bh_str part = bh::str(text);
  bh_outgoing out{};
  out.size = sizeof out;
  out.kind = kind;
  out.session = session;
  out.part_count = text.empty() ? 0 : 1;
  out.parts = &part;
  return plugin.ext<bh_transport>(BH_EXT_TRANSPORT)->send(plugin.self(), &out);
}

struct Client {
  int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

  explicit Client(const std::string &path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    BH_CHECK(::connect(fd, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0);
  }
  ~Client() { ::close(fd); }
  void write(std::string_view text) const {
    BH_CHECK(::send(fd, text.data(), text.size(), MSG_NOSIGNAL) ==
             static_cast<ssize_t>(text.size()));
  }
  // Returns the next bytes, or "" if the plugin closes the connection.
  std::string read(FakeHost &host) const {
    char bytes[4096];
    ssize_t n = -1;
    BH_CHECK(host.run_until(
        [&] { return (n = ::recv(fd, bytes, sizeof bytes, MSG_DONTWAIT)) >= 0; }, 5'000));
    return {bytes, static_cast<std::size_t>(n)};
  }
};

}  // namespace

int main(int, char **argv) {
  FakeHost host;
  Gateway seen;
  host.user = &seen;
  const bh_host_transport table = host_transport();
  host.add_ext(BH_EXT_HOST_TRANSPORT, &table);
  limits.sessions = 4;
  limits.write_stall_ms = 100;
  const auto *store =
      static_cast<const bh_host_store *>(host.host()->get_ext(host.host()->ctx, BH_EXT_HOST_STORE));
  const std::string path = std::string(bh::view(store->folder(host.host()->ctx))) + "/s";

  {
    TestPlugin invalid(host, argv[1]);
    BH_CHECK(invalid.configure(R"({"listen":"relative"})") == BH_E_INVALID);
    BH_CHECK(invalid.error_text().find("absolute path") != std::string_view::npos);
  }
  TestPlugin plugin(host, argv[1]);
  BH_CHECK(plugin.configure(R"({"listen":")" + path + "\"}") == BH_OK);
  BH_CHECK(plugin.start() == BH_OK);
  const auto *transport = plugin.ext<bh_transport>(BH_EXT_TRANSPORT);
  BH_CHECK(transport->listen(plugin.self(), plugin.error()) == BH_OK);
  BH_CHECK(bh::view(transport->endpoint(plugin.self())) == "unix:" + path);

  // Requests may arrive in pieces, and each response is one line.
  {
    const Client client(path);
    client.write("{\"id\":1}\n\r\n{\"id\"");
    BH_CHECK(host.run_until([&] { return seen.messages.size() == 1; }, 5'000));
    client.write(":2}\n{\"method\":\"x\"}\n");
    BH_CHECK(host.run_until([&] { return seen.messages.size() == 3; }, 5'000));
    BH_CHECK(seen.messages[1] == R"({"id":2})");
    BH_CHECK(send(plugin, 1, BH_OUT_ANSWER, "{\"id\":1,\n\"result\":{}}") == BH_OK);
    BH_CHECK(client.read(host) == "{\"id\":1, \"result\":{}}\n");
    BH_CHECK(send(plugin, 9, BH_OUT_ANSWER, "{}") == BH_STALE);

    // A client that has ended its input still gets its last response. Then its session is closed.
    ::shutdown(client.fd, SHUT_WR);
    BH_CHECK(host.run_until([&] { return !seen.input_ended.empty(); }, 5'000));
    BH_CHECK(seen.gone.empty());
    BH_CHECK(send(plugin, 1, BH_OUT_ANSWER, "{\"id\":2}") == BH_OK);
    BH_CHECK(client.read(host) == "{\"id\":2}\n");
    BH_CHECK(client.read(host).empty());
    BH_CHECK(seen.gone == std::vector<bh_session>{1});
  }

  // A client that does not read is disconnected: at once if its queue is full, else after a time.
  {
    const std::string large(limits.write_queue_bytes / 2, 'x');
    const Client full(path), slow(path);
    BH_CHECK(host.run_until([&] { return seen.last == 3; }, 5'000));
    bh_status status = BH_OK;
    for (int i = 0; i < 100 && status == BH_OK; ++i) status = send(plugin, 2, BH_OUT_EVENT, large);
    BH_CHECK(status == BH_E_LIMIT);
    BH_CHECK((seen.gone == std::vector<bh_session>{1, 2}));
    BH_CHECK(send(plugin, 3, BH_OUT_EVENT, large) == BH_OK);
    BH_CHECK(host.run_until([&] { return seen.gone.size() == 3; }, 5'000));
  }

  // The gateway closes a session. A client without a session is disconnected.
  const Client closed(path);
  BH_CHECK(host.run_until([&] { return seen.last == 4; }, 5'000));
  const Client rejected(path);
  BH_CHECK(rejected.read(host).empty());
  transport->session_ended(plugin.self(), 4, bh::str("test"));
  BH_CHECK(closed.read(host).empty());
  BH_CHECK(seen.gone.size() == 3);

  // stop() closes the connections.
  seen.last = 0;
  const Client open(path);
  BH_CHECK(host.run_until([&] { return seen.last == 1; }, 5'000));
  transport->stop_accepting(plugin.self());
  plugin.stop();
  BH_CHECK(seen.gone.size() == 4 && host.deferred() == 0);
  return 0;
}
