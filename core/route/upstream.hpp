// A server of the profile and its lanes.
//
// Used on the I/O thread. Owned by Upstreams, then by Draining.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bulkhead/abi/ext/connector.h"
#include "bulkhead/abi/ext/tools.h"
#include "profile/profile.hpp"
#include "route/lane.hpp"
#include "route/protocol_choice.hpp"
#include "route/server_status.hpp"

namespace bulkhead {

class Upstream {
 public:
  Upstream(LaneHost &host, ServerDef definition)
      : protocol(definition), host_(host), def_(std::move(definition)) {}

  const ServerDef &def() const noexcept { return def_; }
  // Applies a definition that needs no new connection; see same_wire().
  void redefine(ServerDef definition);
  const std::string &name() const noexcept { return def_.name; }

  // The connector or the tools plugin of the server. If both are null, `unusable` contains the
  // reason.
  const bh_connector *connector = nullptr;
  const bh_tools *tools = nullptr;
  void *self = nullptr;
  std::string unusable;
  ProtocolChoice protocol;

  // During a reload: the upstream that this one replaces. New lanes inherit from its lanes.
  const Upstream *former = nullptr;
  std::uint64_t drain_until_ns = 0;  // while it is draining
  bool requested_roots = false;      // sent roots/list although the profile declares none to it

  // The server has sent requests to clients over a wire that does not show for which call. From
  // then on, each principal without sessions gets a lane of its own, so that such requests can be
  // attributed.
  bool asks = false;

  // Does a client with these capabilities get its own connection? `key` is the client's key of
  // views; see RequestScopes.
  bool has_own_lane(ClientCaps caps, std::uint64_t key) const noexcept;
  // The lane for a client with these capabilities (of a session of its own, if the definition says
  // so), made and started if there is none. Null: disabled or unusable.
  Lane *lane_for(ClientCaps caps, std::uint64_t session);
  // Closes and removes a lane and the other lanes of its pool. Their calls must have ended. Does
  // nothing for a lane that was already removed.
  void remove(Lane *lane);
  // Starts the missing additional connections of the pool whose first lane this is.
  void fill_pool(Lane &first);
  // Returns the lane to which a call of this tool is sent: `first`, or, if the tool is pool-safe,
  // the next ready lane of its pool.
  Lane *share(Lane &first, std::string_view tool);
  const std::vector<std::unique_ptr<Lane>> &lanes() const noexcept { return lanes_; }

  // Returns the time-out of a request in milliseconds, limited to the maximum.
  std::uint64_t timeout_ms(mcp::Method method, std::string_view tool) const;

  // Returns true if the server may have this URI as its own, according to the lists of all of its
  // lanes, including remembered ones. Also true while none of the lanes has a list.
  bool may_have(std::string_view uri) const;

  // Returns the remembered list of a lazy server for clients with these capabilities, or null if it
  // is unknown.
  const std::string *kept_list(ClientCaps caps) const noexcept;
  // Stores the list; empty if it is too long. Returns false if lists are not stored, or this list
  // is already stored.
  bool keep_list(ClientCaps caps, const std::string &text);

  ServerStatus status() const;
  const Lane *shown_lane() const noexcept;

 private:
  ClientCaps declared_caps(ClientCaps caps, std::uint64_t session) const noexcept;
  void inherit(Lane &lane) const;

  LaneHost &host_;
  ServerDef def_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::uint32_t shared_calls_ = 0;  // selects the lanes of pools in rotation
};

}  // namespace bulkhead
