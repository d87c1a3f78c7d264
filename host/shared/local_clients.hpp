// Lets other programs of this user (`bulkhead stdio`, `tools`, `call`) use the gateway's servers: a
// transport on a Unix socket beside the service socket, and the answer to a program that asks to
// join.
//
// The transport's token is returned only to programs that the service socket admits (see peer.hpp)
// and whose profile has equal marks. A sandboxed server cannot obtain it: sandboxes hide the
// folder, and the service socket rejects descendants of the gateway.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "profile/profile.hpp"
#include "service/service_protocol.hpp"

namespace bulkhead::program {

class LocalClients {
 public:
  static constexpr const char *transport_id = "local-clients";

  // service_socket is the path of the service socket. Uses the current working folder.
  explicit LocalClients(std::string_view service_socket);

  // Adds the transport. If its plugin is not installed, the gateway runs without local clients.
  void add_to(Profile &profile) const;

  // Answers a JoinRequest with a JoinAnswer, or with BH_E_DENIED and the parts of `profile` that
  // differ.
  ServiceAnswer answer(std::string_view request, const Profile &profile) const;

 private:
  std::string differences(const std::vector<std::string> &parts, const Profile &profile) const;

  const std::string path_, token_, folder_;
};

}  // namespace bulkhead::program
