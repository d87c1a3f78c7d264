#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <thread>

#include "control_client.hpp"
#include "control_server.hpp"
#include "test_folder.hpp"

using namespace bulkhead;
using namespace bulkhead::program;

namespace {

// A reactor turning on a thread of its own, with a control socket on it.
class Served {
 public:
  Served(std::string path, std::string answer) : reactor_(std::move(*Reactor::create())) {
    auto opened =
        ControlServer::open(*reactor_, std::move(path), [answer](auto done) { done(answer); });
    REQUIRE(opened);
    server_ = std::move(*opened);
    thread_ = std::thread([this] { reactor_->run(); });
  }
  ~Served() {
    reactor_->stop();
    thread_.join();
    server_.reset();
  }

 private:
  std::unique_ptr<Reactor> reactor_;
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

}  // namespace

TEST_CASE("a gateway is found and answers, also at length") {
  TestFolder folder;
  const std::string answer = "{\"pid\":1,\"x\":\"" + std::string(3u << 20, 'y') + "\"}";
  Served served(folder / "1-1.sock", answer);
  struct stat info{};
  REQUIRE(::stat((folder / "1-1.sock").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  for (int i = 0; i < 20; ++i) {
    const auto found = find_gateways({folder.path, folder / "missing"});
    REQUIRE(found.size() == 1);
    CHECK(found[0].error.empty());
    CHECK(found[0].snapshot == answer);
  }
}

TEST_CASE("clients that do not read keep nobody from asking for long") {
  TestFolder folder;
  const std::string answer(3u << 20, 'y');
  Served served(folder / "1-1.sock", answer);
  std::vector<int> idle;
  for (std::size_t i = 0; i < ControlServer::max_connections; ++i) {
    idle.push_back(connect_to(folder / "1-1.sock"));
    char byte = 0;
    REQUIRE(::read(idle.back(), &byte, 1) == 1);  // it has a slot
  }
  auto found = find_gateways({folder.path});
  REQUIRE(found.size() == 1);
  CHECK_FALSE(found[0].error.empty());  // all slots are taken: closed unanswered
  for (const int fd : idle) ::close(fd);
  for (int i = 0; i < 100 && !found[0].error.empty(); ++i) found = find_gateways({folder.path});
  CHECK(found[0].error.empty());
}

TEST_CASE("what a dead gateway left is removed, other files are not") {
  TestFolder folder;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string stale = folder / "9-9.sock";
  std::memcpy(address.sun_path, stale.data(), stale.size());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  REQUIRE(::bind(fd, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0);
  ::close(fd);
  std::filesystem::create_directory(folder / "keep");
  CHECK(find_gateways({folder.path}).empty());
  CHECK_FALSE(std::filesystem::exists(stale));
  CHECK(std::filesystem::exists(folder / "keep"));
}

TEST_CASE("the socket goes with its gateway") {
  TestFolder folder;
  {
    Served served(folder / "1-1.sock", "{}");
  }
  CHECK(std::filesystem::is_empty(folder.path));
}

TEST_CASE("a name that is too long is an error, not a truncated socket") {
  TestFolder folder;
  auto reactor = Reactor::create();
  REQUIRE(reactor);
  CHECK_FALSE(
      ControlServer::open(**reactor, folder / std::string(120, 'x'), [](auto done) { done(""); }));
}
