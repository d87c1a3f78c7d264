// Stores pending approval requests, grants that cover more than one call, and whether an approver
// is watching the list. Independent of clients and lanes.
//
// Owner: the ApprovalDesk. Runs on the reactor thread. Limits: limits.approvals_* and max_grants.
// Approval requests and grants are lost when the process exits, and calls that wait for approval
// are not run.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "profile/profile.hpp"
#include "route/approval.hpp"
#include "route/client_load.hpp"

namespace bulkhead {

class Approvals {
 public:
  static constexpr std::size_t max_grants = 1024;  // if exceeded, the oldest grant is removed
  // The longest time for which watch() counts an approver as present.
  static constexpr std::uint64_t max_watch_ms = 60'000;

  // An approval request and its parked call.
  struct Waiting {
    ApprovalQuestion question;
    std::uint64_t call = 0;
    std::uint64_t bytes = 0;           // size of the parked call's message
    std::shared_ptr<ClientLoad> load;  // of the client; may be null
  };

  // Returns an empty string if another approval request can be added. Otherwise, returns an error
  // message that names the exceeded limit.
  std::string refusal(const Limits &limits, const ClientLoad &load, std::uint64_t bytes) const;
  // Assigns an id to the approval request and stores it. Returns null if the kernel returned no
  // random bytes for the id.
  const ApprovalQuestion *add(Waiting waiting);
  // These functions return null or nullopt if the approval request is not pending.
  const Waiting *find(std::string_view id) const noexcept;
  const Waiting *find(std::uint64_t call) const noexcept;
  std::optional<Waiting> take(std::uint64_t call);
  ApprovalList list(std::uint64_t now_ns);
  std::size_t size() const noexcept { return waiting_.size(); }

  // Stores a grant for later calls; ApprovalScope describes which calls it covers. Does nothing for
  // Kind::once. Returns the grant that was removed to make room, if any.
  std::optional<ApprovalGrant> grant(const ApprovalQuestion &question, const ApprovalScope &scope,
                                     std::uint64_t now_ns);
  bool granted(const ApprovalQuestion &question, std::uint64_t now_ns);
  bool has_grants() const noexcept { return !grants_.empty(); }
  void forget_session(std::uint64_t session);
  // Removes and returns all grants for the server. Called when a reload has removed or replaced the
  // server.
  std::vector<ApprovalGrant> take_server(std::string_view server);
  std::optional<ApprovalGrant> revoke(std::string_view id);
  // Removes and returns the grants that allow calls to a tool with any arguments. Called when the
  // rules change.
  std::vector<ApprovalGrant> take_tool_grants();
  // Removes and returns the grants that allow the request's tool with any arguments in the same
  // session and for the same client process, but were given for a different definition of the tool.
  std::vector<ApprovalGrant> take_outdated(const ApprovalQuestion &question);

  // Called when an approver has read the list and promises to read it again within `ms`, which is
  // capped at max_watch_ms.
  void watch(std::uint64_t now_ns, std::uint64_t ms) noexcept;
  bool watched(std::uint64_t now_ns) const noexcept { return now_ns < watched_until_ns_; }

 private:
  using List = std::list<Waiting>;
  template <class F>
  std::vector<ApprovalGrant> take_grants(F matches);
  void remove_expired(std::uint64_t now_ns);

  List waiting_;  // oldest first
  std::unordered_map<std::uint64_t, List::iterator> by_call_;
  std::uint64_t bytes_ = 0;
  std::list<ApprovalGrant> grants_;  // oldest first
  std::uint64_t watched_until_ns_ = 0;
};

// Returns the part of a call's _meta that an approval covers: all members except the progress token
// and the trace context, which differ in each call. The remaining members are copied unchanged.
// If the message is of MCP 2026-07-28, the members that the gateway replaces (RequestMeta) are not
// covered either. Returns an empty string if no members remain.
std::string approved_meta(std::string_view meta, bool modern);
// The parts of a call's params that the digest covers.
struct ApprovedTexts {
  std::string_view arguments;  // for completion/complete and tasks/update: the complete params
  std::string_view meta;       // from approved_meta()
  std::string_view extra;      // from mcp::extra_params()
};
std::string approval_digest(std::string_view method, std::string_view server, std::string_view name,
                            const ApprovedTexts &texts);
// Returns the digest for approvals that cover calls to a tool with any arguments and any _meta.
std::string tool_approval_digest(std::string_view method, std::string_view server,
                                 std::string_view name, std::string_view extra);

}  // namespace bulkhead
