// A server of the profile and its lanes. Thread: I/O thread. Owned by Upstreams, then by Draining.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bulkhead/abi/ext/connector.h"
#include "bulkhead/abi/ext/tools.h"
#include "profile/profile.hpp"
#include "route/lane.hpp"
#include "route/server_edge.hpp"
#include "route/server_status.hpp"

namespace bulkhead {

class Upstream {
 public:
  Upstream(LaneHost &host, ServerDef definition) : host_(host), def_(std::move(definition)) {}

  const ServerDef &def() const noexcept { return def_; }
  // Applies a definition that needs no new connection; see same_wire().
  void redefine(ServerDef definition);
  const std::string &name() const noexcept { return def_.name; }

  // The connector or the tools plugin of the server. Neither: `unusable` has the reason.
  const bh_connector *connector = nullptr;
  const bh_tools *tools = nullptr;
  void *self = nullptr;
  std::string unusable;
  // The edge of the protocol generation that the server speaks.
  const ServerEdge *edge = &session_server_edge();

  // During a reload: the upstream that this one replaces, and from whose lanes new ones inherit.
  const Upstream *former = nullptr;
  std::uint64_t drain_until_ns = 0;  // while it is draining
  bool requested_roots = false;      // sent roots/list although the profile declares none to it

  // Does a client with these capabilities get its own connection?
  bool has_own_lane(ClientCaps caps) const noexcept;
  // The lane for a client with these capabilities (of a session of its own, if the definition says
  // so), made and started if there is none. Null: disabled or unusable.
  Lane *lane_for(ClientCaps caps, std::uint64_t session);
  // Closes and removes a lane with the others of its pool. Its calls have ended before. Does
  // nothing for a lane that was removed.
  void remove(Lane *lane);
  // Starts the other connections of the pool that this lane is the first of, as far as they are
  // not there.
  void fill_pool(Lane &first);
  // The lane that a call of this tool goes to: `first`, or, if the tool is safe for that, the next
  // of its pool that is ready.
  Lane *share(Lane &first, std::string_view tool);
  const std::vector<std::unique_ptr<Lane>> &lanes() const noexcept { return lanes_; }

  // The time-out of a request in milliseconds, limited to the maximum.
  std::uint64_t timeout_ms(mcp::Method method, std::string_view tool) const;

  // May the server have this URI of its own? By the lists of all of its lanes, remembered ones
  // included; true while none of them has listed.
  bool may_have(std::string_view uri) const;

  // The remembered list of a lazy server for clients with these capabilities. Null: unknown.
  const std::string *kept_list(ClientCaps caps) const noexcept;
  // Stores the list; empty: too long. False: lists are not stored, or this one is stored already.
  bool keep_list(ClientCaps caps, const std::string &text);

  ServerStatus status() const;
  const Lane *shown_lane() const noexcept;

 private:
  ClientCaps declared_caps(ClientCaps caps, std::uint64_t session) const noexcept;
  void inherit(Lane &lane) const;

  LaneHost &host_;
  ServerDef def_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::uint32_t shared_calls_ = 0;  // gone round the pools
};

}  // namespace bulkhead
