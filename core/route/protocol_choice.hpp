// The protocol generation that the connections of one server are opened with: the one that the
// profile names, or the one that earlier connections have found (the verdict). A verdict is stored
// with the server's lists, so that it outlives the gateway, and is forgotten after lifetime_s.
//
// Times are seconds since 1970. Used on the I/O thread. Owned by the Upstream.
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

  // Reads the verdict of the definition's stored lists, if there is one.
  explicit ProtocolChoice(const ServerDef &definition);

  // The edge that a new connection tries first.
  const ServerEdge &first(std::uint64_t now_s) const noexcept;
  // The edge that it tries next if the server does not accept the first one; null if the profile
  // names the revision.
  const ServerEdge *second(std::uint64_t now_s) const noexcept;

  // The server has accepted this edge's opening request with this revision.
  void decided(const ServerEdge &edge, std::string_view revision, std::uint64_t now_s);
  // The server has ended while it was asked for its revision: the next connection begins with
  // initialize. Returns false if that is known already, so it is not the reason.
  bool ended_on_probe() noexcept;

  // Adds the verdict to the text of a list (kept_list.hpp); a text that was too long to be stored
  // becomes the verdict alone.
  std::string stamped(std::string list) const;

 private:
  void read(std::string_view list);
  bool valid(std::uint64_t now_s) const noexcept;

  const ServerEdge *pinned_ = nullptr;
  std::string revision_;  // of the verdict; empty if there is none
  std::uint64_t decided_s_ = 0;
  bool ends_on_probe_ = false;
};

}  // namespace bulkhead
