// A server from the profile, with its lanes.
//
// Used on the reactor thread. Owned by Upstreams; once a reload has removed or replaced the server,
// by Draining.
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

  // During a reload, the upstream that this one replaces. New lanes inherit the items from its
  // lanes.
  const Upstream *former = nullptr;
  std::uint64_t drain_until_ns = 0;  // while it is draining
  bool requested_roots = false;      // the server has sent roots/list although `roots` is "off"

  // True once the server has sent a request to a client over a wire that does not show which call
  // the request belongs to. From then on, each request scope (RequestScopes) gets its own lane for
  // sessionless requests that declare elicitation, sampling or roots, so that the server's requests
  // can be attributed.
  bool asks = false;

  // Returns true if a client with these capabilities gets its own connection. `key` is the client's
  // view key; see RequestScopes.
  bool has_own_lane(ClientCaps caps, std::uint64_t key) const noexcept;
  // Returns the lane for a client with these capabilities, and creates it if it does not exist.
  // `session` is the client's view key. If has_own_lane() returns true and the key is not 0, only
  // this key uses the lane; otherwise, the lane is shared. Returns null if the server is disabled
  // or unusable.
  Lane *lane_for(ClientCaps caps, std::uint64_t session);
  // Closes and removes a lane together with the other lanes of its pool. Their calls must have
  // ended. Does nothing if the lane has already been removed.
  void remove(Lane *lane);
  // Starts the additional connections that are missing from the pool whose first lane is `first`.
  void fill_pool(Lane &first);
  // Returns the lane that should receive a call to this tool: if the tool is pool-safe, the next
  // lane of the pool that can take calls and lists the definition in `resolved`; otherwise, or if
  // there is none, `first`.
  Lane *share(Lane &first, std::string_view tool, const Resolved &resolved);
  const std::vector<std::unique_ptr<Lane>> &lanes() const noexcept { return lanes_; }

  // Returns the time-out of a request in milliseconds. It is at most limits.timeout_ceiling_ms.
  std::uint64_t timeout_ms(mcp::Method method, std::string_view tool) const;

  // Returns true if the URI may belong to this server, according to the lists that its lanes have
  // read or that are stored. Also returns true while there are no lists.
  bool may_have(std::string_view uri) const;

  // Returns the stored list for clients with these capabilities, or null if none is stored. Only
  // the lists of shared servers are stored.
  const std::string *kept_list(ClientCaps caps) const noexcept;
  // Stores the list. If the text is empty, which means that the list is too long, removes the
  // stored list. Returns false if lists are not stored or if nothing has changed.
  bool keep_list(ClientCaps caps, const std::string &text);

  ServerStatus status() const;
  // Returns the lane that represents the server in status(), or null if there are no lanes.
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
