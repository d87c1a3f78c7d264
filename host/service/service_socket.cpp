#include "service/service_socket.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "bulkhead/cpp/clock.hpp"
#include "common/paths.hpp"
#include "common/signals.hpp"

namespace bulkhead::program {
namespace {

std::string unused_name() {
  return std::to_string(::getpid()) + "-" + std::to_string(bh::monotonic_ns()) + ".sock";
}

}  // namespace

Result<std::unique_ptr<ServiceSocket>> ServiceSocket::open(std::string path) {
  // The socket is bound under a temporary name and renamed when it is listening. Otherwise,
  // `bulkhead status` could find it before listen() is called, assume that its gateway has exited,
  // and remove it.
  const std::string unready = path + "~";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (unready.size() >= sizeof address.sun_path) {
    return fail(BH_E_INTERNAL, path + ": the path is too long for a socket");
  }
  std::memcpy(address.sun_path, unready.data(), unready.size());
  OwnedFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return fail(BH_E_INTERNAL, describe_errno("socket", errno));
  // The umask prevents other users from connecting before the permissions are set. The directory's
  // mode, 0700, also prevents this.
  const mode_t mask = ::umask(0177);
  const int bound = ::bind(fd.get(), reinterpret_cast<const sockaddr *>(&address), sizeof address);
  const int error = errno;
  ::umask(mask);
  if (bound != 0) return fail(BH_E_INTERNAL, describe_errno(path, error));
  if (::listen(fd.get(), backlog) != 0 || ::rename(unready.c_str(), path.c_str()) != 0) {
    const int why = errno;
    ::unlink(unready.c_str());
    return fail(BH_E_INTERNAL, describe_errno(path, why));
  }
  remove_file_on_kill(path);
  return std::unique_ptr<ServiceSocket>(new ServiceSocket(std::move(fd), std::move(path)));
}

Result<std::unique_ptr<ServiceSocket>> ServiceSocket::open_in(
    const std::vector<std::string> &folders) {
  Error why{BH_E_NOT_FOUND, "no usable folder for the service socket"};
  for (const std::string &folder : folders) {
    if (auto made = make_private_dir(folder); !made) {
      why = made.error();
      continue;
    }
    auto opened = open(folder + "/" + unused_name());
    if (opened) return opened;
    why = opened.error();
  }
  return std::unexpected(why);
}

ServiceSocket::~ServiceSocket() {
  ::unlink(path_.c_str());
  unregister_file(path_);
}

}  // namespace bulkhead::program
