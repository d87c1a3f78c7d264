// The conversation of a lane on its current connection: the protocol generation and revision, and
// the _meta members and headers that each request must have.
//
// Owned by the lane. Used on the reactor thread.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "profile/profile.hpp"
#include "route/request_headers.hpp"
#include "route/request_meta.hpp"
#include "route/server_edge.hpp"
#include "route/session.hpp"

namespace bulkhead {

class Conversation {
 public:
  // `caps` are the capabilities that the lane declares; `server_caps` are those of the current
  // connection's server. The references must stay valid.
  Conversation(const ServerDef &def, const ServerCaps &server_caps, ClientCaps caps)
      : def_(def), server_caps_(server_caps), caps_(caps) {}

  // Called when the server has accepted the opening request of this edge.
  void begin(const ServerEdge &edge, std::string revision) {
    edge_ = &edge;
    revision_ = std::move(revision);
    metas_.clear();
  }
  // Called when a new connection is being opened.
  void end() noexcept { edge_ = nullptr; }

  // Null until the generation of this connection is known.
  const ServerEdge *edge() const noexcept { return edge_; }
  // Only valid if edge() is not null.
  const std::string &revision() const noexcept { return revision_; }
  bool stateless() const noexcept { return edge_ != nullptr && edge_->stateless(); }
  bool has_sessions() const noexcept { return edge_ != nullptr && !edge_->stateless(); }
  bool takes(mcp::Method method) const { return edge_ == nullptr || edge_->has(method); }

  // Returns the members to add to params._meta of a request for this client. If `client` is null,
  // the request is for several clients. `tasks` is true if the request declares the tasks
  // extension. Requires edge().
  const RequestMeta &meta_for(const Session *client, bool tasks = false);

  // Returns the headers for a request that uses this edge; they are valid until the next call. The
  // result is empty if the server needs none. Fails if the arguments cannot be repeated in headers.
  Result<std::span<const bh_header>> headers_for(const ServerEdge &edge,
                                                 const RequestHeaders::Values &values);
  std::span<const bh_header> headers_for(const ServerEdge &edge, mcp::Method method);
  // Reads the header annotations of the tools. Removes each tool with an invalid annotation from
  // the list, and passes a message about it to on_removed. Does nothing if requests on this
  // connection have no headers.
  void use_tools(ItemList *tools, const std::function<void(const std::string &text)> &on_removed);

 private:
  const ServerDef &def_;
  const ServerCaps &server_caps_;
  const ClientCaps caps_;
  const ServerEdge *edge_ = nullptr;
  std::string revision_;
  RequestHeaders headers_;
  // By the client's log level and the declared capabilities.
  std::map<std::pair<int, ClientCaps>, RequestMeta> metas_;
};

}  // namespace bulkhead
