#include "connector-vsock/dial.hpp"

#include <bulkhead/cpp/text.hpp>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <linux/vm_sockets.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace connector_vsock {
namespace {

union SocketAddress {
  sockaddr any;
  sockaddr_vm vm;
  sockaddr_un local;
};

socklen_t fill(const Definition &definition, SocketAddress *out) noexcept {
  std::memset(out, 0, sizeof *out);
  if (definition.kind == AddressKind::vsock) {
    out->vm.svm_family = AF_VSOCK;
    out->vm.svm_cid = definition.cid;
    out->vm.svm_port = definition.port;
    return sizeof out->vm;
  }
  out->local.sun_family = AF_UNIX;
  std::memcpy(out->local.sun_path, definition.path.data(), definition.path.size());
  return sizeof out->local;
}

}  // namespace

int dial(const Definition &definition) noexcept {
  SocketAddress address;
  const socklen_t size = fill(definition, &address);
  const int fd = ::socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  if (::connect(fd, &address.any, size) == 0 || errno == EINPROGRESS || errno == EINTR) return fd;
  const int why = errno;
  ::close(fd);
  errno = why;
  return -1;
}

int connect_error(int fd) noexcept {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

std::string hybrid_request(const Definition &definition) {
  return "CONNECT " + std::to_string(definition.port) + "\n";
}

Hybrid hybrid_answer(std::string_view in, std::size_t *size) noexcept {
  const std::size_t end = in.find('\n');
  if (end == in.npos) return in.size() < max_hybrid_answer ? Hybrid::more : Hybrid::refused;
  *size = end + 1;
  return in.starts_with("OK ") || in.substr(0, end) == "OK" ? Hybrid::accepted : Hybrid::refused;
}

std::string explain(const Definition &definition, int error) {
  const std::string what = bh::error_name(error);
  const bool vm = definition.kind == AddressKind::vsock;
  if (vm && (error == EAFNOSUPPORT || error == ENODEV)) {
    return what + ": this machine has no vsock device";
  }
  if (vm && (error == ECONNRESET || error == ECONNREFUSED)) {
    return what + ": no process is listening on this port on the host";
  }
  if (!vm && error == ENOENT) return what + ": no such socket";
  if (!vm && error == ECONNREFUSED) return what + ": no process is listening on this socket";
  return what;
}

}  // namespace connector_vsock
