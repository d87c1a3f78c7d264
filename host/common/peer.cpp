#include "common/peer.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "base/owned_fd.hpp"

namespace bulkhead::program {
namespace {

constexpr int most_ancestors = 256;

// Returns the parent process ID, the fourth field of /proc/PID/stat. The second field is the
// process name, which may contain any character, including ')'.
std::optional<pid_t> parent_of(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  const OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 1024> buffer;
  const ssize_t n = fd ? ::read(fd.get(), buffer.data(), buffer.size()) : -1;
  if (n <= 0) return std::nullopt;
  std::string_view text(buffer.data(), static_cast<std::size_t>(n));
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos || name_end + 4 > text.size()) return std::nullopt;
  text.remove_prefix(name_end + 4);  // skips ") S "
  pid_t parent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parent);
  if (error != std::errc{} || end == text.data()) return std::nullopt;
  return parent;
}

}  // namespace

bool peer_may_ask(int fd, pid_t own) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  if (peer.uid != ::geteuid() && peer.uid != 0) return false;
  if (peer.pid == own) return true;
  pid_t pid = peer.pid;
  for (int i = 0; i < most_ancestors; ++i) {
    if (pid == own) return false;
    if (pid == 1) return true;
    const auto parent = parent_of(pid);
    if (!parent) return false;      // the process has exited, or its entry cannot be read
    if (*parent == 0) return true;  // the first process of this PID namespace, or one outside
    pid = *parent;
  }
  return false;
}

}  // namespace bulkhead::program
