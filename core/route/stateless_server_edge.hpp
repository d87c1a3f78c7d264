// The server edge for MCP revision 2026-07-28, which has no sessions. Each request therefore
// carries the revision, the capabilities of the lane's clients, and the gateway's name.
//
// Thread-safe because it has no state.
#pragma once

#include <string_view>

#include "route/server_edge.hpp"

namespace bulkhead {

class StatelessServerEdge final : public ServerEdge {
 public:
  static constexpr std::string_view revision = "2026-07-28";

  bool stateless() const noexcept override { return true; }
  bool has(mcp::Method method) const noexcept override;
  mcp::Method opening_method() const override { return mcp::Method::server_discover; }
  std::string opening_params(ClientCaps caps) const override;
  Result<Opened> opened(std::string_view result) const override;
  std::string_view confirmation() const override { return {}; }
  std::string request_meta(ClientCaps caps, int log_level) const override;
  const AnswerForm *answer_form() const noexcept override;
};

const StatelessServerEdge &stateless_server_edge() noexcept;

// Returns true if the error code, as defined by this revision, concerns only the gateway's own
// request to the server. Clients receive another error instead, except that an error about a
// missing capability may be passed on; see AnswerForm::replace().
bool is_hop_error(std::int32_t error_code) noexcept;

}  // namespace bulkhead
