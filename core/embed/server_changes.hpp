// Manages the servers that plugins add to the profile's servers at run time (bh.host.control/1).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/abi/ext/draft/control.h"
#include "embed/host_core.hpp"
#include "embed/part.hpp"
#include "embed/profile_reload.hpp"
#include "host.hpp"
#include "layers/definitions.hpp"
#include "reactor/once_per_turn.hpp"

namespace bulkhead {

class ServerChanges {
 public:
  ServerChanges(HostCore &core, ProfileReload &reload);

  // See bh_host_control. The change is applied at the end of the current iteration of the event
  // loop, because router or plugin functions may still be on the call stack.
  bh_status replace_servers(Part &part, std::string_view definitions, std::uint64_t wait_ms,
                            bh_control_done done, void *arg, bh_error *error);
  // Returns the servers in the profile, followed by the servers that plugins have added. Of the
  // latter, those whose names are already taken or are held by the corporation's profile are
  // omitted, and the reasons are added to *refused.
  std::vector<ServerDef> all_servers(const Profile &profile,
                                     std::vector<std::string> *refused) const;
  // Must be called when a pending change may be complete. Several calls result in a single check,
  // at the end of the current iteration of the event loop.
  void check_later();
  // Drops all pending changes, without calling `done`, because the host is stopping.
  void drop();

 private:
  struct Added {
    const Part *part = nullptr;
    std::vector<ServerDef> servers;
  };
  // A replace_servers() request whose `done` function has not been called yet.
  struct Change {
    ServerChanges *changes = nullptr;
    Part *part = nullptr;
    DefinedServers defined;
    bool applied = false, over = false;
    std::uint64_t wait_ms = 0, timer = 0;
    ApplyReport report;
    bh_control_done done = nullptr;
    void *arg = nullptr;
  };

  void apply_all();
  void check();
  void refuse_taken(const std::vector<ServerDef> &servers, Change *change) const;
  std::string report(const Change &change) const;

  HostCore &core_;
  ProfileReload &reload_;
  std::vector<Added> added_;
  std::vector<std::unique_ptr<Change>> changes_;
  bool check_pending_ = false;
};

}  // namespace bulkhead
