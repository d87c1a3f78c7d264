// How servers of one generation of the protocol are spoken to. Everything on the servers' side that
// depends on a revision is behind this: what opens a connection, what its answer says, what each
// request carries. Without state; a lane keeps what it has read. Thread: [io].
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "mcp/scan.hpp"
#include "route/protocol.hpp"

namespace bulkhead {

class ServerEdge {
 public:
  virtual ~ServerEdge() = default;

  // The first request on a connection: its method, and its params, a JSON object.
  virtual mcp::Method opening_method() const = 0;
  virtual std::string opening_params(ClientCaps caps) const = 0;

  // What the result of that request, a JSON text of the server's, says.
  struct Opened {
    std::string revision;
    ServerCaps caps;
    std::string instructions;  // at most max_instructions_bytes
  };
  // BH_E_PROTOCOL: the server cannot be spoken to; the text continues 'server "x": '.
  virtual Result<Opened> opened(std::string_view result) const = 0;
  // The notification that is sent then; empty: none.
  virtual std::string_view confirmation() const = 0;

  // What each further request has in params._meta: members of a JSON object, without its braces.
  // Empty: nothing.
  virtual std::string request_meta(ClientCaps caps) const = 0;
};

// The revisions with a session, 2024-11-05 to 2025-11-25: initialize and initialized.
const ServerEdge &session_server_edge() noexcept;

}  // namespace bulkhead
