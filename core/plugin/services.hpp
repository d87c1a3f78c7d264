// Host services for plugins that may be provided by another process: a compartment has neither the
// secrets folder nor permission to bind, and can access a storage folder only if it was created
// before the confinement.
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

// The users who may connect to a Unix socket through its file.
enum class SocketFile : std::uint8_t { own_user, everybody };  // 0600, 0666

// If a function is empty, this process provides the service itself. Called on the control thread;
// dial and sign are called on any thread.
struct HostServices {
  std::function<Result<std::string>(const std::string &instance, std::string_view name)> get_secret;
  std::function<Result<void>(const std::string &instance, std::string_view name,
                             std::string_view value)>
      put_secret;
  std::function<Result<std::string>(const std::string &instance)> folder;
  // Called on any thread.
  std::function<Result<AuditSignature>(const std::string &instance, std::string_view statement)>
      sign;
  // `address` contains a sockaddr.
  std::function<Result<OwnedFd>(std::string_view address, std::string_view as_configured,
                                SocketFile file)>
      listen;
  std::function<Result<void>(std::string_view address)> will_dial;
  std::function<Result<OwnedFd>(std::string_view address)> dial;
};

// Binds and listens. If the file of a Unix socket exists but no process is listening on it, removes
// the file.
Result<OwnedFd> open_listener(std::string_view address, std::string_view as_configured,
                              SocketFile file);
// If the address is a Unix socket, adds its path to `paths`. The caller of open_listener() removes
// the file at the end.
void remember_socket_file(std::string_view address, std::vector<std::string> *paths);

}  // namespace bulkhead
