// Services of the host that another process may provide. A compartment needs this because it cannot
// access the folder of secrets, cannot bind sockets, and can access a storage folder only if it was
// created before confinement.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/owned_fd.hpp"
#include "base/result.hpp"
#include "plugin/audit_key.hpp"

namespace bulkhead {

// The users who can connect to a Unix socket.
enum class SocketFile : std::uint8_t { own_user, everybody };  // file modes 0600 and 0666

// If a function is empty, this process provides the service itself. dial and sign are called on any
// thread, the other functions on the control thread.
struct HostServices {
  std::function<Result<std::string>(const std::string &instance, std::string_view name)> get_secret;
  std::function<Result<void>(const std::string &instance, std::string_view name,
                             std::string_view value)>
      put_secret;
  std::function<Result<std::string>(const std::string &instance)> folder;
  std::function<Result<AuditSignature>(const std::string &instance, std::string_view statement)>
      sign;
  // `address` contains a sockaddr.
  std::function<Result<OwnedFd>(std::string_view address, std::string_view as_configured,
                                SocketFile file)>
      listen;
  std::function<Result<void>(std::string_view address)> will_dial;
  std::function<Result<OwnedFd>(std::string_view address)> dial;
};

// Binds a socket and listens on it. Removes the file of a Unix socket if it exists and no process
// listens on it.
Result<OwnedFd> open_listener(std::string_view address, std::string_view as_configured,
                              SocketFile file);
// Adds the path to `paths` if the address is a Unix socket. The file must be removed when the
// listener is closed.
void remember_socket_file(std::string_view address, std::vector<std::string> *paths);

}  // namespace bulkhead
