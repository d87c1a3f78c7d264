// The clients of other programs of this user that use the gateway's servers instead of starting
// their own: `bulkhead stdio`, `tools`, `call`. The gateway's part: a transport on a Unix socket
// beside the service socket, and the answer to a program that asks to join.
//
// The token in the transport's configuration is told only to programs that the service socket
// admits (see peer.hpp) and whose profile has equal marks. A server cannot learn it: sandboxes hide
// the folder, and the service socket refuses descendants of the gateway.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "profile/profile.hpp"
#include "service/service_protocol.hpp"

namespace bulkhead::program {

class LocalClients {
 public:
  static constexpr const char *transport_id = "local-clients";

  // service_socket: the path of the service socket. The working folder is that of now.
  explicit LocalClients(std::string_view service_socket);

  // Adds the transport. Without its plugin, the gateway runs without local clients.
  void add_to(Profile &profile) const;

  // JoinRequest -> JoinAnswer, or BH_E_DENIED with the parts of `profile` that differ.
  ServiceAnswer answer(std::string_view request, const Profile &profile) const;

 private:
  const std::string path_, token_, folder_;
};

}  // namespace bulkhead::program
