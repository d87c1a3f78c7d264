// Detects listed tools whose definitions are not approved. If the profile enforces pins, such tools
// are neither shown to clients nor called.
//
// Owner: the Router. Runs on the reactor thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "catalog/items.hpp"
#include "profile/profile.hpp"
#include "route/pins.hpp"
#include "route/server_status.hpp"

namespace bulkhead {

class Lane;
class Upstream;

class PinWatch {
 public:
  using Log = std::function<void(std::int32_t level, std::string_view text)>;
  using OnNews = std::function<void(const std::vector<PinNews> &)>;
  // on_news receives new and changed definitions. If on_news is empty, they are not stored.
  PinWatch(const Profile &profile, Log log, OnNews on_news);

  // Called when a server has listed its tools, or when its stored list is shown.
  void listed(const Lane &lane);
  // Called when the profile's pins have changed. `lanes` contains all lanes whose servers have
  // listed their items. Returns true if the set of tools that clients may use may have changed.
  bool use_profile(const std::vector<const Lane *> &lanes);

  bool enforces() const noexcept { return pins_.enforces(); }
  // Compares the tool's definition with the approved definition and returns a BH_PIN_... value.
  // Returns BH_PIN_UNKNOWN if pins are off or the item is not a tool. Otherwise, returns
  // BH_PIN_SAME for tools of tools plugins. The connections of a pool run the same server, so if
  // any of them lists a definition that is not approved, BH_PIN_SAME is not returned.
  std::uint32_t state(const Lane &lane, ItemKind kind, std::string_view tool,
                      const DefinitionHash &hash) const;
  std::uint32_t state(const Lane &lane, ItemKind kind, std::string_view tool,
                      std::string_view definition) const;
  // Sets the number of the server's unapproved tools in *status, and whether they are hidden. The
  // tools that the server lists only for clients with other capabilities are included.
  void add_unapproved(const Upstream &upstream, ServerStatus *status) const;

 private:
  std::uint32_t state_in_pool(const Lane &lane, std::string_view tool,
                              const DefinitionHash &hash) const;

  const Profile &profile_;
  const Log log_;
  const OnNews on_news_;
  Pins pins_;
};

}  // namespace bulkhead
