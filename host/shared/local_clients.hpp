// Lets this user's other programs (`bulkhead stdio`, `tools`, `resources`, `prompts`, `call`) use
// this gateway's servers. Adds a transport on a Unix socket in the directory of the service socket,
// and handles the programs' requests to join.
//
// The transport requires a token. A program receives the token only if the service socket admits it
// (see peer.hpp) and its profile has the same marks as the gateway's profile (see
// profile_marks.hpp). A sandboxed server cannot obtain the token: the sandbox hides the directory,
// and the service socket rejects descendants of the gateway.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "profile/profile.hpp"
#include "service/service_protocol.hpp"
#include "shared/profile_marks.hpp"

namespace bulkhead::program {

class LocalClients {
 public:
  static constexpr const char *transport_id = "local-clients";

  // `service_socket` is the path of the service socket. The constructor records the working
  // directory.
  explicit LocalClients(std::string_view service_socket);

  // Adds the transport to the profile as an optional plugin. If the plugin is not installed, the
  // gateway runs without local clients.
  void add_to(Profile &profile) const;

  // Handles a JoinRequest. Returns a JoinAnswer if the profiles have the same marks. If they
  // differ, returns BH_E_DENIED and names the parts that differ. `loaded_ms` is the time at which
  // the profile was loaded (LoadedProfile::loaded_ms). If the socket for local clients does not
  // exist, returns BH_E_UNAVAILABLE with gateway_is_starting while the gateway is starting, and
  // BH_E_DENIED afterwards.
  ServiceAnswer answer(std::string_view request, const Profile &profile, std::uint64_t loaded_ms,
                       bool starting) const;

 private:
  std::string differences(const std::vector<std::string> &parts, const Profile &profile,
                          const ProfileMarks &ours, const ProfileMarks &theirs) const;

  const std::string path_, token_, folder_;
};

}  // namespace bulkhead::program
