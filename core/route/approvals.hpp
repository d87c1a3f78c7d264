// Stores pending approval questions, grants that cover more than one call, and whether an approver
// is present. Independent of clients and lanes.
//
// Owner: the ApprovalDesk. Runs on the reactor thread. Limits: limits.approvals_*; max_grants. The
// state does not outlive the process: pending calls are refused when the process ends.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "profile/profile.hpp"
#include "route/approval.hpp"

namespace bulkhead {

class Approvals {
 public:
  static constexpr std::size_t max_grants = 1024;  // if exceeded, the oldest is removed
  // An approver must renew its watch within this time.
  static constexpr std::uint64_t max_watch_ms = 60'000;

  // A question, with the call that it concerns.
  struct Waiting {
    ApprovalQuestion question;
    std::uint64_t call = 0;
    std::uint64_t bytes = 0;  // of the parked call
  };

  // Returns the reason why no more questions can be added, or an empty string. The reason names the
  // exceeded limit.
  std::string refusal(const Limits &limits, std::uint64_t session, std::uint64_t bytes) const;
  // Assigns the id and stores the question. Returns null if the kernel returned no random number.
  const ApprovalQuestion *add(Waiting waiting);
  // These functions return null if the question is not pending.
  const Waiting *find(std::string_view id) const noexcept;
  const Waiting *find(std::uint64_t call) const noexcept;
  std::optional<Waiting> take(std::uint64_t call);
  ApprovalList list(std::uint64_t now_ns);
  std::size_t size() const noexcept { return waiting_.size(); }
  std::size_t waiting_of(std::uint64_t session) const noexcept;

  // Allows further calls within the scope, under the same rule.
  void grant(const ApprovalQuestion &question, const ApprovalScope &scope, std::uint64_t now_ns);
  bool granted(const ApprovalQuestion &question, std::uint64_t now_ns);
  void forget_session(std::uint64_t session);
  // Called when the server was removed or its definition changed.
  void forget_server(std::string_view server);
  // Removes the grant with this id.
  std::optional<ApprovalGrant> revoke(std::string_view id);
  // Called when the rules have changed. Removes all grants that allow any arguments of a tool.
  std::vector<ApprovalGrant> take_tool_grants();
  // Removes the grants for this tool and session that were given for a different definition of the
  // tool.
  std::vector<ApprovalGrant> take_outdated(const ApprovalQuestion &question);

  // Called when an approver has read the list and will read it again within `ms` (at most
  // max_watch_ms).
  void watch(std::uint64_t now_ns, std::uint64_t ms) noexcept;
  bool watched(std::uint64_t now_ns) const noexcept { return now_ns < watched_until_ns_; }

 private:
  using List = std::list<Waiting>;
  template <class F>
  std::vector<ApprovalGrant> take_grants(F matches);

  List waiting_;  // oldest first
  std::unordered_map<std::uint64_t, List::iterator> by_call_;
  std::unordered_map<std::uint64_t, std::size_t> by_session_;
  std::uint64_t bytes_ = 0;
  std::list<ApprovalGrant> grants_;  // oldest first
  std::uint64_t watched_until_ns_ = 0;
};

// Returns the part of a call's _meta that an approval covers: all members except the progress token
// and the trace, which differ in each call. Names and values are unchanged. Returns an empty string
// if no members remain.
std::string approved_meta(std::string_view meta);
// The parts of a call's params that an approval covers.
struct ApprovedTexts {
  std::string_view arguments;  // for a completion: all of params
  std::string_view meta;       // from approved_meta()
  std::string_view extra;      // from mcp::extra_params()
};
std::string approval_digest(std::string_view method, std::string_view server, std::string_view name,
                            const ApprovedTexts &texts);
// Returns the digest for grants that allow any arguments and any _meta.
std::string tool_approval_digest(std::string_view method, std::string_view server,
                                 std::string_view name, std::string_view extra);

}  // namespace bulkhead
