// The server edge of one protocol generation. It contains everything on the server side that
// depends on a revision: the opening request, its result, and the members that each request
// carries. An edge has no state; the lane stores the results.
//
// Used on the I/O thread.
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

  // The method and the params (a JSON object) of the first request on a connection.
  virtual mcp::Method opening_method() const = 0;
  virtual std::string opening_params(ClientCaps caps) const = 0;

  // The result of the opening request, parsed from the server's JSON text.
  struct Opened {
    std::string revision;
    ServerCaps caps;
    std::string instructions;  // at most max_instructions_bytes
  };
  // Fails with BH_E_PROTOCOL if the server supports none of the known revisions; the error text
  // follows 'server "x": '.
  virtual Result<Opened> opened(std::string_view result) const = 0;
  // The notification that follows the result; empty if there is none.
  virtual std::string_view confirmation() const = 0;

  // The members of params._meta for each subsequent request, without braces; empty if there are
  // none.
  virtual std::string request_meta(ClientCaps caps) const = 0;
};

// The edge for the revisions with a session, 2024-11-05 to 2025-11-25: initialize and initialized.
const ServerEdge &session_server_edge() noexcept;

}  // namespace bulkhead
