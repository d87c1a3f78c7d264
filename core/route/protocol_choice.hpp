// Chooses the protocol generation with which to open connections to one server. If the profile
// names a revision, or the transport (HTTP+SSE) implies one, its generation is used. Otherwise, the
// choice depends on the "verdict", the revision that an earlier connection has detected. The
// verdict expires after lifetime_s. It is stored together with the server's lists, so it survives a
// restart of the gateway. Without a valid verdict, connections start with server/discover, unless
// the server has exited on it (ended_on_probe()).
//
// Times are seconds since 1970. Used on the reactor thread. Owned by the Upstream.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "profile/profile.hpp"
#include "route/server_edge.hpp"

namespace bulkhead {

class ProtocolChoice {
 public:
  static constexpr std::uint64_t lifetime_s = 24 * 3600;

  // Reads the verdict from the stored lists of the definition, if there is one.
  explicit ProtocolChoice(const ServerDef &definition);

  // Returns the server edge to try first on a new connection.
  const ServerEdge &first(std::uint64_t now_s) const noexcept;
  // Returns the server edge to try if the server does not accept the first one, or null if the
  // profile or the transport determines the generation.
  const ServerEdge *second(std::uint64_t now_s) const noexcept;

  // Stores the verdict. Called when the server has accepted the opening request of this edge with
  // this revision of the protocol.
  void decided(const ServerEdge &edge, std::string_view revision, std::uint64_t now_s);
  // Called when the server has exited in response to server/discover, or no longer responds after
  // it. Connections then start with initialize until a generation is detected. Returns false if
  // this has already been recorded, for example by another connection, or does not matter because
  // the generation is fixed.
  bool ended_on_probe() noexcept;

  // Adds the verdict to the text of a stored list (see kept_list.hpp) and returns the result. An
  // empty string, which stands for a list that is too long to store, becomes an object that
  // contains only the verdict.
  std::string stamped(std::string list) const;

 private:
  void read(std::string_view list);
  bool valid(std::uint64_t now_s) const noexcept;

  const ServerEdge *pinned_ = nullptr;
  std::string revision_;  // revision of the verdict; empty if there is none
  std::uint64_t decided_s_ = 0;
  bool ends_on_probe_ = false;
};

}  // namespace bulkhead
