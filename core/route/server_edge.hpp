// The server edge of one protocol generation. It contains everything on the server side that
// depends on a revision: the opening request, its result, and the members that each request
// carries. An edge has no state; the lane stores the results.
//
// Used on the I/O thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "mcp/scan.hpp"
#include "route/protocol.hpp"

namespace bulkhead {

class AnswerForm;

class ServerEdge {
 public:
  virtual ~ServerEdge() = default;

  // Returns true if the server keeps no state between requests.
  virtual bool stateless() const noexcept { return false; }
  // Returns false if the generation has no such message, so that it must not be sent.
  virtual bool has(mcp::Method) const noexcept { return true; }

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
  // none. log_level is the level that the client has set; -1 if it has set none.
  virtual std::string request_meta(ClientCaps caps, int log_level) const = 0;

  // The form of the servers' answers; null if it is the form that clients with a session expect.
  virtual const AnswerForm *answer_form() const noexcept { return nullptr; }

 protected:
  // Returns what the results of all generations have in common. The result must be an object.
  static Opened describe(std::string revision, std::string_view result);
};

// The edge for the revisions with a session, 2024-11-05 to 2025-11-25: initialize and initialized.
// `offered` is the index in `revisions` of the revision that initialize offers.
const ServerEdge &session_server_edge(std::uint8_t offered = newest_revision) noexcept;

}  // namespace bulkhead
