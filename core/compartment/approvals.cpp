#include "compartment/approvals.hpp"

namespace bulkhead {

Result<std::string> answer_approval_request(Host &host, std::uint32_t request,
                                            std::string_view value) {
  ApprovalWatch watch;
  ApprovalAnswer answer;
  switch (static_cast<ApprovalRequest>(request)) {
    case ApprovalRequest::list:
      if (!from_bytes(value, &watch)) break;
      return to_bytes(host.approvals(watch.watch_ms));
    case ApprovalRequest::answer: {
      if (!from_bytes(value, &answer)) break;
      // The answer came from another process, so it was not given through the client itself,
      // whatever it claims.
      if (answer.surface != ApprovalSurface::terminal) answer.surface = ApprovalSurface::api;
      if (auto done = host.answer_approval(answer); !done) return std::unexpected(done.error());
      return std::string();
    }
  }
  return fail(BH_E_INVALID, "the approval request is malformed");
}

}  // namespace bulkhead
