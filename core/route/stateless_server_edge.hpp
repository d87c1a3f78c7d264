// The server edge for revision 2026-07-28, which has no sessions. Each request contains the
// revision, the capabilities of the lane's clients and the name of the gateway.
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

// Returns true for error codes of this revision that only concern the connection between gateway
// and server. Clients never receive these codes.
bool is_hop_error(std::int32_t error_code) noexcept;

}  // namespace bulkhead
