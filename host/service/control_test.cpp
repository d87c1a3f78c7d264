#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <thread>

#include "common/peer.hpp"
#include "common/test_folder.hpp"
#include "service/control_client.hpp"
#include "service/control_server.hpp"
#include "service/service_socket.hpp"

using namespace bulkhead;
using namespace bulkhead::program;

namespace {

// Admits peers as a gateway would. In this test, this process is the gateway, so its forked
// children count as descendants of the gateway.
void admit_others(int fd, const std::function<void(bool)> &done) {
  done(peer_may_ask(fd, ::getpid()));
}

// A service socket that is served by a reactor on a separate thread.
class Served {
 public:
  Served(std::string path, const std::string &answer) : reactor_(std::move(*Reactor::create())) {
    auto opened = ServiceSocket::open(std::move(path));
    REQUIRE(opened);
    socket_ = std::move(*opened);
    server_ = std::make_unique<ControlServer>(
        *reactor_, socket_->fd(), admit_others,
        [answer](const ControlRequest &, const ControlServer::Reply &reply) {
          reply({200, answer});
        });
    thread_ = std::thread([this] { reactor_->run(); });
  }
  ~Served() {
    reactor_->stop();
    thread_.join();
    server_.reset();
  }

 private:
  std::unique_ptr<Reactor> reactor_;
  std::unique_ptr<ServiceSocket> socket_;
  std::unique_ptr<ControlServer> server_;
  std::thread thread_;
};

int connect_to(const std::string &path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  REQUIRE(fd >= 0);
  REQUIRE(::connect(fd, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0);
  return fd;
}

void send_to(int fd, std::string_view text) {
  REQUIRE(::send(fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size()));
}

std::string read_all(int fd) {
  std::string out;
  char buffer[4096];
  for (ssize_t n = 0; (n = ::read(fd, buffer, sizeof buffer)) > 0;) {
    out.append(buffer, static_cast<std::size_t>(n));
  }
  ::close(fd);
  return out;
}

}  // namespace

TEST_CASE("a gateway is found and can send large responses") {
  TestFolder folder;
  const std::string answer = "{\"pid\":1,\"x\":\"" + std::string(3u << 20, 'y') + "\"}";
  Served served(folder / "1-1.sock", answer);
  struct stat info{};
  REQUIRE(::stat((folder / "1-1.sock").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  for (int i = 0; i < 20; ++i) {
    const auto found =
        ask_gateways({folder.path, folder / "missing"}, "GET", "/status", status_wait_ms);
    REQUIRE(found.size() == 1);
    CHECK(found[0].error.empty());
    CHECK(found[0].answer == answer);
  }
}

TEST_CASE("clients that do not read block others only until the timeout") {
  TestFolder folder;
  const std::string answer(3u << 20, 'y');
  Served served(folder / "1-1.sock", answer);
  std::vector<int> idle;
  for (std::size_t i = 0; i < ControlServer::max_connections; ++i) {
    idle.push_back(connect_to(folder / "1-1.sock"));
    send_to(idle.back(), "GET /status HTTP/1.1\r\n\r\n");
    char byte = 0;
    REQUIRE(::read(idle.back(), &byte, 1) == 1);  // the connection occupies a slot
  }
  auto found = ask_gateways({folder.path}, "GET", "/status", status_wait_ms);
  REQUIRE(found.size() == 1);
  // All slots are occupied, so the connection is closed without a response.
  CHECK_FALSE(found[0].error.empty());
  for (const int fd : idle) ::close(fd);
  for (int i = 0; i < 100 && !found[0].error.empty(); ++i)
    found = ask_gateways({folder.path}, "GET", "/status", status_wait_ms);
  CHECK(found[0].error.empty());
}

TEST_CASE("messages name a gateway by its process ID") {
  CHECK(gateway_name("/run/user/0/bulkhead/1081-77335937676016.sock") == "gateway with pid 1081");
  CHECK(gateway_name("7-1.sock") == "gateway with pid 7");
  for (const char *other :
       {"/tmp/1081/gateway.sock", "/tmp/1081.sock", "/tmp/-1.sock", "/tmp/1081", "/tmp/1-1/", ""}) {
    CHECK(gateway_name(other) == other);
  }
}

TEST_CASE("sockets of gateways that have exited are removed, other files are kept") {
  TestFolder folder;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string stale = folder / "9-9.sock";
  std::memcpy(address.sun_path, stale.data(), stale.size());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  REQUIRE(::bind(fd, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0);
  ::close(fd);
  std::filesystem::create_directory(folder / "keep");
  CHECK(ask_gateways({folder.path}, "GET", "/status", status_wait_ms).empty());
  CHECK_FALSE(std::filesystem::exists(stale));
  CHECK(std::filesystem::exists(folder / "keep"));
}

TEST_CASE("the socket file is removed with its gateway") {
  TestFolder folder;
  {
    Served served(folder / "1-1.sock", "{}");
  }
  CHECK(std::filesystem::is_empty(folder.path));
}

TEST_CASE("a socket name that is too long is an error, not truncated") {
  TestFolder folder;
  CHECK_FALSE(ServiceSocket::open(folder / std::string(120, 'x')));
}

TEST_CASE("requests may arrive in parts, and invalid requests get an error") {
  TestFolder folder;
  auto reactor = std::move(*Reactor::create());
  std::vector<ControlRequest> seen;
  ControlServer::Reply later;
  const auto socket = std::move(*ServiceSocket::open(folder / "s"));
  auto server = std::make_unique<ControlServer>(
      *reactor, socket->fd(), admit_others,
      [&](const ControlRequest &request, ControlServer::Reply reply) {
        seen.push_back(request);
        if (request.path == "/later") {
          later = std::move(reply);
        } else {
          reply({200, "{}"});
        }
      });
  const auto turn = [&] {
    for (int i = 0; i < 5; ++i) reactor->poll(0);
  };
  const auto ask = [&](std::string_view text) {
    const int fd = connect_to(folder / "s");
    send_to(fd, text);
    turn();
    ::shutdown(fd, SHUT_WR);
    turn();
    return read_all(fd);
  };
  const int fd = connect_to(folder / "s");
  for (const char c : std::string_view("POST /a?b HTTP/1.1\r\ncontent-LENGTH: 3\r\n\r\nx")) {
    send_to(fd, {&c, 1});
    turn();
  }
  send_to(fd, {"\0z", 2});
  turn();
  CHECK(read_all(fd).starts_with("HTTP/1.1 200 OK\r\n"));
  REQUIRE(seen.size() == 1);
  CHECK(seen[0].method == "POST");
  CHECK(seen[0].path == "/a");
  CHECK(seen[0].body == std::string("x\0z", 3));

  CHECK(ask("nonsense\r\n\r\n").find(" 400 ") != std::string::npos);
  CHECK(ask("GET x HTTP/1.1\r\n\r\n").find(" 400 ") != std::string::npos);
  CHECK(ask("GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n").find(" 400 ") !=
        std::string::npos);
  CHECK(ask("GET / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n").find(" 413 ") !=
        std::string::npos);
  CHECK(ask("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n").find(" 501 ") !=
        std::string::npos);
  CHECK(ask("GET / HTTP/1.1\r\nOrigin: http://evil\r\n\r\n").find(" 403 ") != std::string::npos);
  CHECK(ask("GET / HTTP/1.1\r\nSec-Fetch-Site: cross-site\r\n\r\n").find(" 403 ") !=
        std::string::npos);
  CHECK(ask("GET /" + std::string(20'000, 'x')).find(" 431 ") != std::string::npos);
  for (const char *refused :
       {"GET / HTTP/1.1\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        "GET / HTTP/1.1\r\nX: a\r\n b\r\n\r\n", "GET / HTTP/1.1\r\nX: \x01\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "GET http://a/ HTTP/1.1\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\n\r\n"}) {
    CAPTURE(refused);
    CHECK(ask(refused).starts_with("HTTP/1.1 400 "));
  }
  // The client disconnects before the request is complete.
  CHECK(ask("GET / HTTP/1.1\r\nHost").empty());
  CHECK(seen.size() == 1);

  // The handler may send its response after the client has disconnected or the server was
  // destroyed.
  const int gone = connect_to(folder / "s");
  send_to(gone, "GET /later HTTP/1.1\r\n\r\n");
  turn();
  REQUIRE(later);
  ::close(gone);
  turn();
  later({200, "{}"});
  const int waiting = connect_to(folder / "s");
  send_to(waiting, "GET /later HTTP/1.1\r\n\r\n");
  turn();
  later({200, "{\"late\":1}"});
  CHECK(read_all(waiting).ends_with("{\"late\":1}"));
  later({200, "twice"});
  server.reset();
  later({200, "{}"});
}

TEST_CASE("a truncated response and a response that is not HTTP are errors") {
  TestFolder folder;
  const auto socket = std::move(*ServiceSocket::open(folder / "s"));
  const auto answered = [&](std::string_view answer) {
    std::optional<FoundGateway> found;
    std::thread client([&] { found = ask_gateway(folder / "s", "GET", "/", reload_wait_ms); });
    int fd = -1;
    while ((fd = ::accept(socket->fd(), nullptr, nullptr)) < 0) std::this_thread::yield();
    char request[256];
    while (::read(fd, request, sizeof request) < 0) std::this_thread::yield();
    send_to(fd, answer);
    ::close(fd);
    client.join();
    REQUIRE(found);
    return *found;
  };
  const FoundGateway whole = answered("HTTP/1.1 409 Conflict\r\nContent-Length: 2\r\n\r\n{}");
  CHECK(whole.status == 409);
  CHECK(whole.answer == "{}");
  CHECK(whole.error.empty());
  const FoundGateway part = answered("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}");
  CHECK(part.error == "incomplete response");
  CHECK(part.answer.empty());
  CHECK(answered("SSH-2.0-x\r\n\r\n").error == "the response is not valid HTTP");
}

TEST_CASE("children of the gateway and other users are rejected") {
  TestFolder folder;
  Served served(folder / "s", "{}");
  const std::string path = folder / "s";
  const auto answered_to_child = [&] {
    int result[2];
    REQUIRE(::pipe(result) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
      sockaddr_un address{};
      address.sun_family = AF_UNIX;
      std::memcpy(address.sun_path, path.data(), path.size());
      const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      char got = 'n';
      if (::connect(fd, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0) {
        const std::string_view text = "GET /status HTTP/1.1\r\n\r\n";
        char byte = 0;
        const bool sent = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL) > 0;
        if (sent && ::read(fd, &byte, 1) == 1) got = 'y';
      }
      [[maybe_unused]] const ssize_t n = ::write(result[1], &got, 1);
      ::_exit(0);
    }
    ::close(result[1]);
    char got = '?';
    REQUIRE(::read(result[0], &got, 1) == 1);
    ::close(result[0]);
    REQUIRE(::waitpid(child, nullptr, 0) == child);
    return got;
  };
  CHECK(answered_to_child() == 'n');
  const int fd = connect_to(path);
  send_to(fd, "GET /status HTTP/1.1\r\n\r\n");
  CHECK(read_all(fd).find("200") != std::string::npos);
}
