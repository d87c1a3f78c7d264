// The interface of server edges. A server edge implements everything that depends on a protocol
// generation on the server side: the opening request, the parsing of its result, and the members
// that each request must contain. An edge has no state: the lane stores the results.
//
// Used on the reactor thread.
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

  // Returns true if servers of this generation keep no state between requests.
  virtual bool stateless() const noexcept { return false; }
  // Returns false if this generation does not define the method. Such a message must not be sent.
  virtual bool has(mcp::Method) const noexcept { return true; }

  // The method and the params (a JSON object) of the first request on a connection.
  virtual mcp::Method opening_method() const = 0;
  virtual std::string opening_params(ClientCaps caps) const = 0;

  // The parsed result of the opening request.
  struct Opened {
    std::string revision;
    ServerCaps caps;
    std::string instructions;  // at most max_instructions_bytes
  };
  // Parses the result of the opening request. Fails with BH_E_PROTOCOL if the server does not
  // support a known revision of this generation. The error message continues a sentence that starts
  // with 'server "x": '.
  virtual Result<Opened> opened(std::string_view result) const = 0;
  // Returns the notification to send after the opening request has succeeded, or an empty string.
  virtual std::string_view confirmation() const = 0;

  // Returns the members to add to params._meta of each later request, without braces. The result
  // may be empty. `log_level` is the level that the client has set, or -1.
  virtual std::string request_meta(ClientCaps caps, int log_level) const = 0;

  // Returns the form of responses from servers of this generation, or null if they already have the
  // form that clients with a session expect.
  virtual const AnswerForm *answer_form() const noexcept { return nullptr; }

 protected:
  // Parses the members that the results of all generations share. `result` must be an object.
  static Opened describe(std::string revision, std::string_view result);
};

// Returns the edge for the session-based revisions, 2024-11-05 to 2025-11-25. `offered` is an index
// into `revisions` and selects the revision that initialize offers.
const ServerEdge &session_server_edge(std::uint8_t offered = newest_revision) noexcept;

}  // namespace bulkhead
