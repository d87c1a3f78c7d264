#include "world.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "ipc_objects.hpp"
#include "sandbox/confine.hpp"

namespace breakout {
namespace {

using bulkhead::OwnedFd;

constexpr std::uint64_t mega = 1U << 20;

void must(bool worked, const char *what) {
  if (worked) return;
  std::perror(what);
  std::abort();
}

OwnedFd bound(int family, int type, const void *address, socklen_t n) {
  OwnedFd fd(::socket(family, type | SOCK_CLOEXEC, 0));
  must(::bind(fd.get(), static_cast<const sockaddr *>(address), n) == 0, "bind");
  // Connections are never accepted, so the queue must be large enough for those of all attempts.
  if (type == SOCK_STREAM) must(::listen(fd.get(), 4096) == 0, "listen");
  return fd;
}

OwnedFd on_loopback(int type) {
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return bound(AF_INET, type, &any, sizeof any);
}

std::uint16_t port_of(const OwnedFd &fd) {
  sockaddr_in address{};
  socklen_t n = sizeof address;
  ::getsockname(fd.get(), reinterpret_cast<sockaddr *>(&address), &n);
  return ntohs(address.sin_port);
}

OwnedFd unix_listener(const std::string &name, bool abstract) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t skip = abstract ? 1 : 0;
  std::memcpy(address.sun_path + skip, name.data(), name.size());
  const auto n = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + skip + name.size());
  return bound(AF_UNIX, SOCK_STREAM, &address, n);
}

char sibling_secret[secret_size] = "secret-of-mine!";

[[noreturn]] void be_sibling(int ready) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  bulkhead::Confinement wish;
  wish.role = "sibling";
  wish.network = true;
  wish.paths = bulkhead::library_paths();
  if (is_root()) wish.ids = {{nobody_uid, nobody_uid}};
  if (!bulkhead::confine(wish)) ::_exit(1);
  // set after the change of user, which clears it
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::write(ready, "x", 1) != 1) ::_exit(1);
  for (;;) ::select(0, nullptr, nullptr, nullptr, nullptr);
}

pid_t start_sibling() {
  int ready[2];
  must(::pipe(ready) == 0, "pipe");
  const pid_t child = ::fork();
  if (child == 0) be_sibling(ready[1]);
  ::close(ready[1]);
  char byte;
  must(::read(ready[0], &byte, 1) == 1, "the sibling");
  ::close(ready[0]);
  return child;
}

}  // namespace

bool is_root() {
  static const bool root = ::geteuid() == 0;
  return root;
}

World::World() {
  char pattern[] = "/tmp/bulkhead-breakout-XXXXXX";
  must(::mkdtemp(pattern) != nullptr, "mkdtemp");
  folder_ = pattern;
  ::chmod(pattern, 0755);
  for (const char *name : {"state", "home", "plugins", "scratch"}) {
    const std::string path = folder_ + "/" + name;
    ::mkdir(path.c_str(), 0755);
    if (is_root()) must(::chown(path.c_str(), nobody_uid, nobody_uid) == 0, "chown");
  }
  target_.state_file = make_file("state/sessions.db");
  target_.home_file = make_file("home/diary");
  target_.plugin_folder = folder_ + "/plugins";
  target_.scratch = folder_ + "/scratch";
  target_.service_socket = folder_ + "/state/service.sock";
  target_.abstract_name = "bulkhead-breakout-" + std::to_string(::getpid());
  tcp_ = on_loopback(SOCK_STREAM);
  udp_ = on_loopback(SOCK_DGRAM);
  service_ = unix_listener(target_.service_socket, false);
  ::chmod(target_.service_socket.c_str(), 0777);
  abstract_ = unix_listener(target_.abstract_name, true);
  target_.tcp_port = port_of(tcp_);
  target_.udp_port = port_of(udp_);
  target_.memory_bytes = 160 * mega;
  target_.disk_bytes = 4 * mega;
  target_.processes = 80;
  target_.ipc_key = 0x42000000U | static_cast<std::uint32_t>(::getpid());
  target_.ipc_name = target_.abstract_name;
  must(make_ipc_objects(target_), "System V and POSIX objects");
  target_.sibling = start_sibling();
  target_.sibling_secret = reinterpret_cast<std::uint64_t>(&sibling_secret[0]);
}

World::~World() {
  remove_ipc_objects(target_);
  ::kill(target_.sibling, SIGKILL);
  ::waitpid(target_.sibling, nullptr, 0);
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

bool World::sibling_lives() const {
  return ::waitpid(target_.sibling, nullptr, WNOHANG) == 0;
}

OwnedFd World::listener() {
  return on_loopback(SOCK_STREAM);
}

std::string World::make_file(const std::string &name) {
  const std::string path = folder_ + "/" + name;
  std::ofstream(path) << "secret\n";
  ::chmod(path.c_str(), 0600);
  if (is_root()) must(::chown(path.c_str(), nobody_uid, nobody_uid) == 0, "chown");
  return path;
}

}  // namespace breakout
