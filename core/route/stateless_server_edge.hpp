// The server edge of revision 2026-07-28: no session. Each request carries the revision, the
// capabilities of the clients of its lane and the gateway's name.
//
// Thread-safe: the edge has no state.
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

// Error codes of this revision that concern one hop only: a client never receives them unchanged.
bool is_hop_error(std::int32_t error_code) noexcept;

}  // namespace bulkhead
