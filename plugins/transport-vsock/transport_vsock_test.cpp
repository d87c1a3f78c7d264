#include "transport-vsock/transport_vsock.hpp"

#include <bulkhead/testing/fake_host.hpp>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "mcp-frame/frame_reader.hpp"
#include "mcp-frame/metadata_line.hpp"

using mcp_frame::Frame;
using transport_vsock::TransportVsock;

namespace {

struct Got {
  std::uint32_t stream;
  bool notification;
  std::string name, payload;
};

std::string request(int id, const std::string &method = "tools/list") {
  return R"({"jsonrpc":"2.0","id":)" + std::to_string(id) + R"(,"method":")" + method + "\"}";
}
std::string notification(const std::string &method, const std::string &params = "{}") {
  return R"({"jsonrpc":"2.0","method":")" + method + R"(","params":)" + params + "}";
}
std::string frame(std::uint32_t stream, const std::string &payload,
                  const std::string &name = "agent") {
  std::string out;
  REQUIRE(mcp_frame::encode({stream, stream == 0, name, payload}, &out) == mcp_frame::Fault::none);
  return out;
}
const std::string line = mcp_frame::metadata_line("CAPSEM_META", "agent");
const std::string duplex = notification("notifications/bulkhead/duplex", R"({"version":1})");

int connect_to(const std::string &path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  REQUIRE(::connect(fd, reinterpret_cast<const sockaddr *>(&address), sizeof address) == 0);
  return fd;
}
int listen_on(const std::string &path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  REQUIRE(::bind(fd, reinterpret_cast<const sockaddr *>(&address), sizeof address) == 0);
  REQUIRE(::listen(fd, 8) == 0);
  return fd;
}

// A fake host that records calls, the plugin, and guests on a Unix socket.
class World {
 public:
  struct Delivered {
    bh_session session;
    std::uint64_t stream;
    std::string text, process;
  };

  explicit World(const std::string &more = "", bool answers = true) : answers_(answers) {
    limits = bh::testing::limits();
    table_.size = sizeof table_;
    table_.limits = &limits;
    table_.session_open = [](void *c, const bh_peer *peer, bh_session *out, bh_error *) {
      World &w = get(c);
      *out = ++w.last_session;
      w.flags = peer->flags;
      w.address = bh::view(peer->address);
      w.transport = bh::view(peer->transport);
      w.max_message = peer->max_message_bytes;
      w.process[*out] = bh::view(peer->process_name);
      return bh_status{BH_OK};
    };
    table_.deliver = [](void *c, const bh_incoming *incoming, bh_delivery *out) {
      World &w = get(c);
      const bh_session session = incoming->session;
      const std::uint64_t stream = incoming->stream;
      const std::string message(bh::view(incoming->message));
      w.delivered.push_back({session, stream, message, w.process[session]});
      const bool asks =
          message.find("\"id\"") != message.npos && message.find("method") != message.npos;
      out->kind = asks ? BH_DELIVERED_ANSWER : BH_DELIVERED_NOTHING;
      if (asks && w.answers_) w.answer(session, stream, "{\"to\":" + message + "}");
      if (asks && !w.at_once.empty()) w.answer(session, stream, w.at_once);
      return bh_status{BH_OK};
    };
    table_.session_close = [](void *c, bh_session, std::uint32_t how) {
      get(c).closes.push_back(how);
    };
    table_.set_process_name = [](void *c, bh_session session, bh_str name) {
      get(c).process[session] = bh::view(name);
    };
    host.user = this;
    host.add_ext(BH_EXT_HOST_TRANSPORT, &table_);
    const auto *store = bh::Host(host.host()).ext<bh_host_store>(BH_EXT_HOST_STORE);
    folder = bh::view(store->folder(&host));
    plugin = std::make_unique<TransportVsock>(host.host());
    const std::string json = R"({"listen":"unix:)" + folder + "/s\"" + more + "}";
    bh_error error = bh::make_error();
    const bh_status status = plugin->configure(bh::str(replaced(json)), &error);
    INFO(bh::text(error));
    REQUIRE(status == BH_OK);
    REQUIRE(plugin->listen(&error) == BH_OK);
    host.turn(0);
  }
  ~World() {
    plugin->stop();
    plugin.reset();
    host.forget();
    CHECK(host.watches() == 0);
    CHECK(host.timers() == 0);
    CHECK(host.faults().empty());
  }

  bh_status send(std::uint32_t kind, bh_session session, std::uint64_t stream,
                 const std::string &text) {
    const bh_str part = bh::str(text);
    bh_outgoing message{};
    message.size = sizeof message;
    message.kind = kind;
    message.session = session;
    message.stream = stream;
    message.parts = &part;
    message.part_count = text.empty() ? 0 : 1;
    return plugin->send(message);
  }
  bh_status answer(bh_session session, std::uint64_t stream, const std::string &text) {
    return send(BH_OUT_ANSWER, session, stream, text);
  }
  bool until(const std::function<bool()> &done) { return host.run_until(done, 60'000); }

  bh_limits limits;
  bh::testing::FakeHost host;
  std::string folder, address, transport;
  std::uint64_t max_message = 0;
  std::string at_once;  // automatic response to every request
  std::unique_ptr<TransportVsock> plugin;
  std::vector<Delivered> delivered;
  std::map<bh_session, std::string> process;
  std::vector<std::uint32_t> closes;
  bh_session last_session = 0;
  std::uint32_t flags = 0;

 private:
  static World &get(void *ctx) {
    return *static_cast<World *>(bh::testing::FakeHost::self(ctx).user);
  }
  std::string replaced(std::string json) const {
    for (std::size_t at; (at = json.find("FOLDER")) != json.npos;) json.replace(at, 6, folder);
    return json;
  }
  bh_host_transport table_{};
  const bool answers_;
};

class Guest {
 public:
  explicit Guest(World &w) : world(w), fd_(connect_to(w.folder + "/s")) {}
  ~Guest() { shut(); }
  void shut() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  int descriptor() const { return fd_; }
  void end_input() { ::shutdown(fd_, SHUT_WR); }
  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n > 0) bytes.remove_prefix(static_cast<std::size_t>(n));
      if (n < 0 && errno != EAGAIN) return;
      world.host.turn(0);
    }
  }
  // Returns false if the connection is closed.
  bool read() {
    char bytes[65'536];
    const ssize_t n = ::recv(fd_, bytes, sizeof bytes, 0);
    if (n == 0 || (n < 0 && errno != EAGAIN)) return false;
    if (n > 0) raw.append(bytes, static_cast<std::size_t>(n));
    return true;
  }
  bool closed() {
    return world.until([&] { return !read(); });
  }
  std::string all(std::size_t n) {
    world.until([&] { return !read() || raw.size() >= n; });
    return raw;
  }
  std::vector<Got> frames(std::size_t n) {
    std::vector<Got> out;
    world.until([&] {
      const bool open = read();
      out.clear();
      mcp_frame::FrameReader reader;
      std::string_view in = raw;
      for (Frame f; reader.next(&in, &f) == mcp_frame::FrameReader::Step::frame;) {
        out.push_back({f.stream, f.notification, std::string(f.name), std::string(f.payload)});
      }
      return out.size() >= n || !open;
    });
    REQUIRE(out.size() == n);
    return out;
  }
  World &world;
  std::string raw;

 private:
  int fd_;
};

}  // namespace

TEST_CASE("a request in a frame is answered on the same stream and with the same process name") {
  World w;
  Guest g(w);
  g.write(line + frame(1, request(7), "other") + frame(3, request(8), ""));
  const auto got = g.frames(2);
  CHECK((got[0].stream == 1 && got[0].name == "other" && !got[0].notification));
  CHECK(got[0].payload == "{\"to\":" + request(7) + "}");
  CHECK((got[1].stream == 3 && got[1].name.empty()));
  CHECK(w.delivered[0].process == "other");  // not the name in the metadata line
  CHECK(w.delivered[1].process == "unknown");
  CHECK(w.address == "uid:" + std::to_string(::getuid()));
  CHECK(w.flags == (BH_PEER_HANDSHAKE_OPTIONAL | BH_PEER_ANSWERS_ONLY));
  CHECK(w.last_session == 1);
  g.shut();
  CHECK(w.until([&] { return !w.closes.empty(); }));
}

TEST_CASE("process names are sanitized for policies and logs, and echoed unchanged in frames") {
  World w;
  Guest g(w);
  g.write(frame(1, request(1), "my agent\n"));
  CHECK(g.frames(1)[0].name == "my agent\n");
  CHECK(w.delivered[0].process == "my_agent_");
}

TEST_CASE("messages are read regardless of how the bytes are split") {
  const std::string bytes =
      line + frame(1, request(1)) + frame(0, notification("n")) + frame(2, request(2));
  World w;
  for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
    Guest g(w);
    g.write(bytes.substr(0, cut));
    w.host.turn(0);
    g.write(bytes.substr(cut));
    CHECK(g.frames(2)[1].stream == 2);
  }
}

TEST_CASE("a repeated or decreasing stream number closes only its own connection") {
  World w;
  Guest good(w);
  good.write(line + frame(1, request(1)));
  for (const std::uint32_t second : {5u, 4u}) {
    Guest g(w);
    g.write(line + frame(5, request(1)) + frame(second, request(2)));
    CHECK(g.closed());
  }
  CHECK(w.host.metric("vsock.closed.stream") == 2);
  good.write(frame(2, request(2)));
  CHECK(good.frames(2)[1].stream == 2);
}

TEST_CASE(
    "an invalid inner header is answered on its stream, and an invalid length closes the "
    "connection") {
  World w;
  Guest g(w);
  std::string bad = frame(7, request(1));
  bad[6] = 2;
  g.write(line + frame(1, request(1)) + bad + frame(2, request(2)));
  const auto got = g.frames(3);
  CHECK(got[1].stream == 7);
  CHECK(got[1].payload.find(R"("code":-32600,"message":"invalid MCP frame: the version)") !=
        std::string::npos);
  CHECK(got[1].payload.find("\"id\"") == std::string::npos);
  CHECK(got[2].stream == 2);
  g.write(std::string("\0\0\0\x0f", 4) + std::string(20, 'x'));
  CHECK(g.closed());
  CHECK(w.host.metric("vsock.bad_frames") == 1);
  CHECK(w.host.metric("vsock.closed.framing") == 1);
}

TEST_CASE("requests without a response get an empty frame, and notifications get none") {
  World w;
  Guest g(w);
  g.write(frame(0, notification("notifications/initialized")) + frame(0, request(1)) +
          frame(0, "{oops") + frame(1, notification("x")) + frame(2, request(2)));
  const auto got = g.frames(2);
  CHECK((got[0].stream == 1 && got[0].payload.empty()));
  CHECK(got[1].stream == 2);
  CHECK(w.delivered.size() == 3);
  CHECK(w.host.metric("vsock.mixed_up") == 2);
}

TEST_CASE(
    "an empty frame releases the stream of a cancelled call; responses may arrive in any order") {
  World w("", false);
  Guest g(w);
  g.write(frame(1, request(1)) + frame(2, request(2)));
  REQUIRE(w.until([&] { return w.delivered.size() == 2; }));
  CHECK(w.answer(1, w.delivered[1].stream, "{2}") == BH_OK);
  CHECK(w.answer(1, w.delivered[0].stream, "") == BH_OK);
  const auto got = g.frames(2);
  CHECK((got[0].stream == 2 && got[0].payload == "{2}"));
  CHECK((got[1].stream == 1 && got[1].payload.empty()));
}

TEST_CASE("requests above the in-flight limit wait, each with its process name") {
  World w("", false);
  w.limits.in_flight_per_session = 2;
  Guest g(w);
  g.write(frame(1, request(1), "one") + frame(2, request(2), "two") + frame(3, request(3), "one") +
          frame(4, request(4), "two"));
  REQUIRE(w.until([&] { return w.delivered.size() == 2; }));
  // Notifications are delivered before queued requests. A cancellation is delivered a second time
  // after these requests.
  const std::string cancel = notification("notifications/cancelled", R"({"requestId":3})");
  g.write(frame(0, cancel, "two"));
  REQUIRE(w.until([&] { return w.delivered.size() == 3; }));
  CHECK(w.delivered[2].text == cancel);
  CHECK(w.answer(1, w.delivered[0].stream, "{1}") == BH_OK);
  REQUIRE(w.until([&] { return w.delivered.size() == 4; }));
  CHECK(w.delivered[3].text == request(3));
  CHECK(w.delivered[3].process == "one");
  g.end_input();
  w.host.turn(0);
  CHECK(w.closes.empty());
  for (const std::size_t i : {1, 3}) CHECK(w.answer(1, w.delivered[i].stream, "{}") == BH_OK);
  REQUIRE(w.until([&] { return w.delivered.size() == 6; }));
  CHECK(w.delivered[4].text == request(4));
  CHECK(w.delivered[4].process == "two");
  CHECK(w.delivered[5].text == cancel);
  CHECK(w.answer(1, w.delivered[4].stream, "{}") == BH_OK);
  CHECK(g.frames(4).size() == 4);
  CHECK(g.closed());
  CHECK(w.closes == std::vector<std::uint32_t>{BH_SESSION_INPUT_ENDED, BH_SESSION_GONE});
}

TEST_CASE("server-initiated messages are sent only if the guest has offered to accept them") {
  const bool offered = GENERATE(false, true);
  World w;
  Guest g(w);
  g.write(line + (offered ? frame(0, duplex) : "") + frame(1, request(1)));
  REQUIRE(g.frames(1).size() == 1);
  CHECK(w.delivered.size() == 1);  // the host does not see the offer
  CHECK(((w.flags & BH_PEER_ANSWERS_ONLY) == 0) == offered);
  CHECK(w.send(BH_OUT_EVENT, 1, 0, "{event}") == BH_OK);
  CHECK(w.send(BH_OUT_ASK, 1, w.delivered[0].stream, "{ask}") == BH_OK);
  g.write(frame(0, R"({"jsonrpc":"2.0","id":9,"result":{}})") + frame(2, request(2)));
  const auto got = g.frames(offered ? 4 : 2);
  CHECK(got.back().stream == 2);
  CHECK(w.delivered.size() == (offered ? 3u : 2u));
  if (offered) {
    CHECK((got[1].notification && got[1].stream == 0 && got[1].payload == "{event}"));
    CHECK((got[2].notification && got[2].payload == "{ask}"));
  }
}

TEST_CASE("an offer after the start of the session is ignored") {
  World w;
  Guest g(w);
  g.write(frame(1, request(1)) + frame(0, duplex) + frame(2, request(2)));
  g.frames(2);
  CHECK(w.delivered.size() == 2);
  CHECK(w.send(BH_OUT_EVENT, 1, 0, "{event}") == BH_OK);
  g.write(frame(3, request(3)));
  CHECK(g.frames(3)[2].stream == 3);
}

TEST_CASE("at the end of input, responses are sent and the connection is closed") {
  World w("", false);
  Guest g(w);
  g.write(line + frame(1, request(1)));
  g.end_input();
  REQUIRE(w.until([&] { return w.closes.size() == 1; }));
  CHECK(w.closes[0] == BH_SESSION_INPUT_ENDED);
  CHECK(w.answer(1, w.delivered[0].stream, "{late}") == BH_OK);
  CHECK(g.frames(1)[0].payload == "{late}");
  CHECK(g.closed());
  CHECK(w.closes == std::vector<std::uint32_t>{BH_SESSION_INPUT_ENDED, BH_SESSION_GONE});
}

TEST_CASE("a response that does not fit into a frame is replaced with an error with its id") {
  World w("", false);
  Guest g(w);
  g.write(frame(1, request(1)));
  REQUIRE(w.until([&] { return w.delivered.size() == 1; }));
  const std::string big(1'100'000, 'x');
  w.answer(1, w.delivered[0].stream, R"({"jsonrpc":"2.0","id":"a","result":")" + big + "\"}");
  const auto got = g.frames(1);
  CHECK(got[0].payload.starts_with(R"({"jsonrpc":"2.0","id":"a","error":{"code":-32603)"));
}

TEST_CASE("the largest frame is accepted in both directions") {
  World w("", false);
  Guest g(w);
  const std::string payload = request(1) + std::string(1'052'656 - request(1).size(), ' ');
  g.write(frame(1, payload, ""));
  REQUIRE(w.until([&] { return w.delivered.size() == 1; }));
  CHECK(w.delivered[0].text == payload);
  w.answer(1, w.delivered[0].stream, payload);
  CHECK(g.frames(1)[0].payload == payload);
}

TEST_CASE("the older protocol has one message per line") {
  World w;
  Guest g(w);
  g.write(line + request(1) + "\n" + notification("x") + "\n" + request(2) + "\n");
  const std::string wanted = "{\"to\":" + request(1) + "}\n{\"to\":" + request(2) + "}\n";
  CHECK(g.all(wanted.size()) == wanted);
  CHECK(w.delivered[0].process == "agent");
  g.raw.clear();
  g.write("{\"x\":\"" + std::string((1u << 20) + 10, 'x') + "\"}\n" + request(3) + "\n");
  const std::string last = "{\"to\":" + request(3) + "}\n";
  CHECK(w.until([&] { return !g.read() || g.raw.ends_with(last); }));
  CHECK(g.raw.find(R"("code":-32600,"message":"message too large")") != std::string::npos);
  CHECK(g.raw.ends_with(last));
}

TEST_CASE("lines: responses and cancellations are delivered before requests that wait") {
  World w("", false);
  w.limits.in_flight_per_session = 2;
  Guest g(w);
  g.write(line + duplex + "\n" + request(1) + "\n" + request(2) + "\n" + request(3) + "\n");
  REQUIRE(w.until([&] { return w.delivered.size() == 2; }));
  const std::string response = R"({"jsonrpc":"2.0","id":9,"result":{}})";
  const std::string cancel = notification("notifications/cancelled", R"({"requestId":3})");
  g.write(response + "\n" + cancel + "\n");
  REQUIRE(w.until([&] { return w.delivered.size() == 4; }));
  CHECK(w.delivered[2].text == response);
  CHECK(w.delivered[3].text == cancel);
  CHECK(w.answer(1, 0, "{1}") == BH_OK);
  REQUIRE(w.until([&] { return w.delivered.size() == 6; }));
  CHECK(w.delivered[4].text == request(3));
  CHECK(w.delivered[5].text == cancel);  // once more, after the queued request
  g.write(request(4) + "\n");
  w.host.turn(0);
  CHECK(w.delivered.size() == 6);  // the limit counts only requests
}

TEST_CASE("a silent connection is closed after sniff_timeout_ms without affecting others") {
  World w(R"(,"sniff_timeout_ms":50)");
  Guest silent(w), half(w), good(w);
  half.write(line + std::string("\0\0", 2));
  good.write(frame(1, request(1)));
  CHECK(good.frames(1)[0].stream == 1);
  CHECK(silent.closed());
  CHECK(half.closed());
  CHECK(w.host.metric("vsock.closed.sniff_timeout") == 2);
  good.write(frame(2, request(2)));
  CHECK(good.frames(2)[1].stream == 2);
}

TEST_CASE("a connection may stay idle after the metadata line, but not after a partial message") {
  World w(R"(,"sniff_timeout_ms":50)");
  Guest idle(w);
  idle.write(line);
  REQUIRE_FALSE(w.host.run_until([&] { return !idle.read(); }, 200));
  idle.write(frame(1, request(1)));
  CHECK(idle.frames(1)[0].stream == 1);
  Guest half(w);
  half.write(line);
  REQUIRE_FALSE(w.host.run_until([&] { return !half.read(); }, 200));
  half.write(std::string("\0", 1));
  CHECK(half.closed());
  CHECK(w.host.metric("vsock.closed.sniff_timeout") == 1);
}

TEST_CASE("a guest that reads nothing is disconnected without affecting others") {
  World w(R"(,"write_timeout_ms":60)");
  Guest slow(w), good(w);
  const std::string payload = request(1) + std::string(200'000, ' ');
  for (std::uint32_t i = 1; i < 20; ++i) {
    if (w.host.metric("vsock.closed.too_slow") != 0) break;
    const std::string bytes = frame(i, payload);
    std::string_view rest = bytes;
    for (int tries = 0; !rest.empty() && tries < 50; ++tries) {
      const ssize_t n = ::send(slow.descriptor(), rest.data(), rest.size(), MSG_NOSIGNAL);
      if (n > 0) rest.remove_prefix(static_cast<std::size_t>(n));
      w.host.turn(0);
    }
    if (!rest.empty()) break;  // the plugin has stopped reading
  }
  good.write(frame(1, request(1)));
  CHECK(good.frames(1)[0].stream == 1);
  CHECK(w.until([&] { return w.host.metric("vsock.closed.too_slow") == 1; }));
  good.write(frame(2, request(2)));
  CHECK(good.frames(2)[1].stream == 2);
}

TEST_CASE("requests of a slow reader are processed at its reading speed, and all are answered") {
  const bool frames = GENERATE(true, false);
  World w("", false);
  Guest g(w);
  std::string asked;
  for (std::uint32_t i = 1; i <= 2'000; ++i) {
    asked += frames ? frame(i, request(1)) : request(1) + "\n";
  }
  // Each response has 10 KB, so the total is 20 MB.
  const std::string large = "\"" + std::string(10'000, 'x') + "\"";
  w.at_once = large;
  g.write(asked);
  w.host.turn(0);
  CHECK(w.delivered.size() < 200);
  const std::size_t size = frames ? frame(1, large).size() : large.size() + 1;
  CHECK(g.all(2'000 * size).size() == 2'000 * size);
  CHECK(w.delivered.size() == 2'000);
  CHECK(w.host.metric("vsock.closed.too_slow") == 0);
}

TEST_CASE("connections that are not MCP are closed, or handed off with the bytes already read") {
  const std::string hello = "\x16\x03\x01 a TLS client's hello";
  {
    World w;
    Guest g(w);
    g.write(line + hello);
    CHECK(g.closed());
    CHECK(w.host.metric("vsock.closed.not_mcp") == 1);
  }
  World w(R"(,"handoff":"unix:FOLDER/tls")");
  const int service = listen_on(w.folder + "/tls");
  Guest g(w);
  g.write(line + hello);
  int accepted = -1;
  REQUIRE(w.until([&] {
    accepted = accepted >= 0 ? accepted : ::accept4(service, nullptr, nullptr, SOCK_NONBLOCK);
    return accepted >= 0 && w.host.metric("vsock.handed_off") == 1;
  }));
  std::string got;
  const auto read_service = [&] {
    char bytes[65'536];
    const ssize_t n = ::recv(accepted, bytes, sizeof bytes, 0);
    if (n > 0) got.append(bytes, static_cast<std::size_t>(n));
    return n;
  };
  CHECK(w.until([&] {
    read_service();
    return got == hello;
  }));
  const std::string large(300'000, 'y');
  got.clear();
  g.write(large);
  g.end_input();
  CHECK(w.until([&] { return read_service() == 0; }));
  CHECK(got == large);
  REQUIRE(::send(accepted, "bye", 3, 0) == 3);
  ::close(accepted);
  CHECK(g.closed());
  CHECK(g.raw == "bye");
  ::close(service);
}

// A service to which connections that are not MCP are handed off.
class Service {
 public:
  explicit Service(World &w) : world_(w), listening_(listen_on(w.folder + "/tls")) {}
  ~Service() {
    shut();
    ::close(listening_);
  }
  void shut() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  void accept() {
    REQUIRE(world_.until([&] {
      if (fd_ < 0) fd_ = ::accept4(listening_, nullptr, nullptr, SOCK_NONBLOCK);
      return fd_ >= 0 && world_.host.metric("vsock.handed_off") == 1;
    }));
  }
  void send(std::string_view bytes) {
    REQUIRE(world_.until([&] {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n > 0) bytes.remove_prefix(static_cast<std::size_t>(n));
      return bytes.empty();
    }));
  }
  std::string read_all() {
    std::string got;
    REQUIRE(world_.until([&] {
      char bytes[65'536];
      const ssize_t n = ::recv(fd_, bytes, sizeof bytes, 0);
      if (n > 0) got.append(bytes, static_cast<std::size_t>(n));
      return n == 0;
    }));
    return got;
  }

 private:
  World &world_;
  const int listening_;
  int fd_ = -1;
};

TEST_CASE("hand-off: more data than fits into the buffers, before and after the service connects") {
  World w(R"(,"handoff":"unix:FOLDER/tls")");
  Service service(w);
  Guest g(w);
  const std::string early = "\x16" + std::string(70'000, 'e'), late(200'000, 'l');
  REQUIRE(::send(g.descriptor(), early.data(), early.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(early.size()));
  REQUIRE(w.until([&] { return w.host.metric("vsock.connections") == 1; }));
  w.host.turn(0);
  std::string_view rest = late;  // unsent bytes
  const ssize_t sent = ::send(g.descriptor(), rest.data(), rest.size(), MSG_NOSIGNAL);
  if (sent > 0) rest.remove_prefix(static_cast<std::size_t>(sent));
  service.accept();
  g.write(rest);
  g.end_input();
  CHECK(service.read_all() == early + late);
}

TEST_CASE("hand-off: all data is forwarded if the service closes the connection immediately") {
  World w(R"(,"handoff":"unix:FOLDER/tls")");
  Service service(w);
  Guest g(w);
  g.write("\x16 hello");
  service.accept();
  const std::string said(300'000, 's');  // exceeds all buffers
  service.send(said);
  service.shut();
  for (int i = 0; i < 20; ++i) w.host.turn(0);  // the guest reads slowly
  CHECK(g.closed());
  CHECK(g.raw == said);
}

std::vector<std::string> logged(const World &w, std::string_view part) {
  std::vector<std::string> out;
  for (const auto &entry : w.host.logs()) {
    if (entry.text.find(part) != entry.text.npos) out.push_back(entry.text);
  }
  return out;
}

TEST_CASE("an unavailable service is logged once, and its recovery is logged") {
  World w(R"(,"handoff":"unix:FOLDER/tls")");
  const auto lose = [&](int times) {
    for (int i = 0; i < times; ++i) {
      Guest g(w);
      g.write("\x16 hello");
      CHECK(g.closed());
    }
  };
  lose(50);
  CHECK(w.host.metric("vsock.handoff_failed") == 50);
  REQUIRE(logged(w, "cannot hand a connection off to unix:").size() == 1);
  CHECK(logged(w, "again").empty());
  {
    Service service(w);
    Guest g(w);
    g.write("\x16 hello");
    service.accept();
    const auto back = logged(w, "are handed off to unix:");
    REQUIRE(back.size() == 1);
    CHECK(back[0].find("again; 50 were lost before") != std::string::npos);
  }
  lose(2);
  CHECK(logged(w, "cannot hand a connection off").size() == 2);
}

// When the guest's connection is handed off, the connection to this port is still being
// established, so its failure is reported later.
TEST_CASE("a port without a listener is treated as an unavailable service") {
  sockaddr_in free_port{};
  free_port.sin_family = AF_INET;
  free_port.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof free_port;
  const int holder = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);  // bound but not listening
  auto *raw = reinterpret_cast<sockaddr *>(&free_port);
  REQUIRE(::bind(holder, raw, size) == 0);
  REQUIRE(::getsockname(holder, raw, &size) == 0);
  World w(R"(,"handoff":"127.0.0.1:)" + std::to_string(ntohs(free_port.sin_port)) + "\"");
  for (int i = 0; i < 3; ++i) {
    Guest g(w);
    g.write("\x16 hello");
    CHECK(g.closed());
  }
  CHECK(w.until([&] { return w.host.metric("vsock.handoff_failed") == 3; }));
  CHECK(w.host.metric("vsock.handed_off") == 0);
  CHECK(logged(w, "cannot hand a connection off").size() == 1);
  ::close(holder);
}

TEST_CASE("only listed peers are accepted, up to the limit") {
  World refused(R"(,"allow_uids":[4294967294])");
  Guest g(refused);
  CHECK(g.closed());
  CHECK(refused.host.metric("vsock.peers_refused") == 1);
  CHECK(logged(refused, "uid:" + std::to_string(::getuid()) + " is not in allow_uids").size() == 1);
  World w(R"(,"max_connections":1,"allow_uids":[)" + std::to_string(::getuid()) + "]");
  Guest first(w);
  first.write(frame(1, request(1)));
  first.frames(1);
  Guest second(w);
  CHECK(second.closed());
  CHECK(w.host.metric("vsock.connections_refused") == 1);
  CHECK(logged(w, "raise max_connections to allow more").size() == 1);
}

// Encodes a frame that exceeds the size limit for guests.
std::string large_frame(std::uint32_t stream, const std::string &payload) {
  char head[mcp_frame::max_head];
  std::size_t size = 0;
  REQUIRE(mcp_frame::encode_head({stream, false, "", {}}, payload.size(), head, &size, 8u << 20) ==
          mcp_frame::Fault::none);
  return std::string(head, size) + payload;
}

TEST_CASE("clients with the local token have stdio sessions and may send large messages") {
  World w(R"(,"local_token":"T0KEN")", false);
  const std::string token_line = mcp_frame::metadata_line("T0KEN", "editor");
  Guest g(w);
  g.write(token_line + frame(1, request(1), ""));
  REQUIRE(w.until([&] { return w.delivered.size() == 1; }));
  CHECK(w.transport == "stdio");
  CHECK(w.address.empty());
  CHECK(w.flags == BH_PEER_ANSWERS_ONLY);  // the handshake is required
  CHECK(w.max_message == w.limits.message_bytes);
  CHECK(bh::view(w.plugin->endpoint()).empty());
  const std::string payload = request(2) + std::string((3u << 20) - request(2).size(), ' ');
  g.write(large_frame(2, payload));
  REQUIRE(w.until([&] { return w.delivered.size() == 2; }));
  CHECK(w.delivered[1].text == payload);
  w.answer(1, w.delivered[1].stream, payload);
  const std::string wanted = large_frame(2, payload);
  CHECK(g.all(wanted.size()) == wanted);
}

TEST_CASE("with a local token, connections without it are closed without a response") {
  World w(R"(,"local_token":"T0KEN","metadata_prefixes":["OTHER"])");
  std::uint64_t n = 0;
  for (const std::string &bytes :
       {frame(1, request(1)), line + frame(1, request(1)), request(1) + "\n",
        mcp_frame::metadata_line("T0KEN", "x") + request(1) + "\n",
        mcp_frame::metadata_line("T0KE", "x") + frame(1, request(1)),
        mcp_frame::metadata_line("OTHER", "x") + frame(1, request(1)),
        mcp_frame::metadata_line("T0KEN", "x") + "GET / HTTP/1.1\r\n\r\n",
        "T0KEN:x\n" + frame(1, request(1))}) {
    Guest g(w);
    g.write(bytes);
    CHECK(g.closed());
    CHECK(g.raw.empty());
    CHECK(w.host.metric("vsock.peers_refused") == ++n);
  }
  CHECK(w.last_session == 0);
  CHECK(w.delivered.empty());
}

TEST_CASE("the socket file is accessible to other users only if the list contains other users") {
  const auto mode = [](const std::string &more) {
    World w(more);
    struct stat status{};
    REQUIRE(::stat((w.folder + "/s").c_str(), &status) == 0);
    return status.st_mode & 0777;
  };
  const std::string own = std::to_string(::geteuid());
  CHECK(mode("") == 0600);
  CHECK(mode(R"(,"allow_uids":[])") == 0600);
  CHECK(mode(R"(,"allow_uids":[0,)" + own + "]") == 0600);
  CHECK(mode(R"(,"allow_uids":[)" + own + ",4000000000]") == 0666);
}

TEST_CASE("an empty list rejects all peers, and the connections of each peer are limited") {
  World closed(R"(,"allow_uids":[])");
  Guest g(closed);
  CHECK(g.closed());
  World w(R"(,"max_connections_per_peer":2)");
  Guest first(w), second(w), third(w);
  CHECK(third.closed());
  first.write(frame(1, request(1)));
  CHECK(first.frames(1)[0].stream == 1);
  first.shut();
  REQUIRE(w.until([&] { return !w.closes.empty(); }));
  Guest fourth(w);
  fourth.write(frame(1, request(1)));
  CHECK(fourth.frames(1)[0].stream == 1);
  CHECK(w.host.metric("vsock.connections_refused") == 1);
  for (int i = 0; i < 20; ++i) {
    Guest more(w);
    CHECK(more.closed());
  }
  CHECK(w.host.metric("vsock.connections_refused") == 21);
  const auto said = logged(w, "a connection was rejected");
  REQUIRE(said.size() == 1);
  CHECK(said[0].find("has 2 connections; raise max_connections_per_peer") != said[0].npos);
}

TEST_CASE("a frequent log line is logged once a minute, with the number of suppressed lines") {
  transport_vsock::LogLimiter limiter;
  constexpr std::uint64_t minute = transport_vsock::LogLimiter::pause_ns;
  CHECK(limiter.due(5));
  CHECK(limiter.suppressed().empty());
  for (int i = 0; i < 7; ++i) CHECK_FALSE(limiter.due(4 + minute));
  CHECK(limiter.due(5 + minute));
  CHECK(limiter.suppressed() == " (7 similar lines suppressed)");
  CHECK_FALSE(limiter.due(6 + minute));
}

TEST_CASE("the default configuration permits two hundred clients in one guest") {
  World w;
  std::vector<std::unique_ptr<Guest>> guests;
  for (int i = 0; i < 200; ++i) {
    guests.push_back(std::make_unique<Guest>(w));
    guests.back()->write(frame(1, request(1)));
  }
  for (const auto &g : guests) CHECK(g->frames(1)[0].stream == 1);
  CHECK(w.host.metric("vsock.connections_refused") == 0);
}

TEST_CASE("a listening guest is reached through its monitor, even after a disconnect") {
  World w(R"(,"dial":"hybrid:FOLDER/vm:5002")");
  const int monitor = listen_on(w.folder + "/vm");
  for (int round = 0; round < 2; ++round) {
    int fd = -1;
    REQUIRE(w.until([&] {
      fd = ::accept4(monitor, nullptr, nullptr, SOCK_NONBLOCK);
      return fd >= 0;
    }));
    std::string got;
    const auto read = [&] {
      char bytes[4'096];
      const ssize_t n = ::recv(fd, bytes, sizeof bytes, 0);
      if (n > 0) got.append(bytes, static_cast<std::size_t>(n));
    };
    CHECK(w.until([&] {
      read();
      return got == "CONNECT 5002\n";
    }));
    got.clear();
    const std::string reply = "OK 1073741824\n" + line + frame(1, request(1));
    REQUIRE(::send(fd, reply.data(), reply.size(), 0) == static_cast<ssize_t>(reply.size()));
    CHECK(w.until([&] {
      read();
      return got.find("tools/list") != got.npos;
    }));
    ::close(fd);
  }
  CHECK(w.address == "hybrid:" + w.folder + "/vm:5002");
  ::close(monitor);
}

TEST_CASE("the host can end the session") {
  World w;
  Guest g(w);
  g.write(frame(1, request(1)));
  g.frames(1);
  w.plugin->session_ended(1, bh::str("shutdown"));
  CHECK(g.closed());
  CHECK(w.answer(1, 1, "{}") == BH_STALE);
}

TEST_CASE("configuration: all address forms are parsed, and one error contains all faults") {
  using transport_vsock::Address;
  Address a;
  for (const char *good :
       {"vsock:5002", "vsock:any:5002", "vsock:3:5002", "unix:/s", "hybrid:/v:1"}) {
    CHECK(transport_vsock::parse_listen(good, &a));
  }
  for (const char *bad :
       {"", "5002", "vsock:", "vsock:x:1", "vsock:4294967295", "unix:", "hybrid:/v", "tcp:1"}) {
    CHECK_FALSE(transport_vsock::parse_listen(bad, &a));
  }
  for (const char *good : {"unix:/s", "127.0.0.1:443", "[::1]:443", "localhost:1"}) {
    CHECK(transport_vsock::parse_handoff(good, &a));
  }
  for (const char *bad : {"", "10.0.0.1:443", "127.0.0.1:0", "[::2]:1", "unix:"}) {
    CHECK_FALSE(transport_vsock::parse_handoff(bad, &a));
  }
  transport_vsock::Config config;
  bh_error error = bh::make_error();
  REQUIRE(transport_vsock::parse_config("{}", &config, &error) == BH_OK);
  CHECK(config.listen == "vsock:5002");
  CHECK(transport_vsock::parse_config(
            R"({"listen":"x","handoff":"8.8.8.8:1","max_connections":0,"allow_cids":[-1],"no":1})",
            &config, &error) == BH_E_INVALID);
  for (const char *wrong : {R"({"listen":"unix:/s","allow_cids":[3]})", R"({"allow_uids":[0]})",
                            R"({"dial":"hybrid:/v:1","allow_uids":[0]})"}) {
    bh_error fault = bh::make_error();
    transport_vsock::Config parsed;
    CHECK(transport_vsock::parse_config(wrong, &parsed, &fault) == BH_E_INVALID);
    CHECK(bh::text(fault).find("only with listen") != std::string_view::npos);
  }
  for (const char *wrong :
       {R"({"listen":"vsock:5002","local_token":"A"})", R"({"local_token":"A"})",
        R"({"listen":"unix:/s","local_token":"a"})", R"({"listen":"unix:/s","local_token":7})"}) {
    bh_error fault = bh::make_error();
    transport_vsock::Config parsed;
    CHECK(transport_vsock::parse_config(wrong, &parsed, &fault) == BH_E_INVALID);
    CHECK(bh::text(fault).find("local_token") != std::string_view::npos);
  }
  for (const char *part : {"listen", "handoff", "max_connections", "allow_cids", "'no'"}) {
    CHECK(bh::text(error).find(part) != std::string_view::npos);
  }
}
