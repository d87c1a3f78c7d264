// Services of the host that another process can provide. Compartments need this: they cannot access
// the secrets folder or bind sockets, and they can access a storage folder only if it was created
// before they were confined.
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

// If a function is empty, this process provides the service itself. dial and sign may be called on
// any thread, the other functions only on the control thread.
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

// Binds a socket and listens on it. If a Unix socket's file already exists but no process is
// listening on it, the file is removed first.
Result<OwnedFd> open_listener(std::string_view address, std::string_view as_configured,
                              SocketFile file);
// If the address is a Unix socket, adds its path to `paths`, because the file must be removed when
// the listener is closed.
void remember_socket_file(std::string_view address, std::vector<std::string> *paths);

}  // namespace bulkhead
