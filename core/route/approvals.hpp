// The questions that wait for a person, the answers that hold for more than one call, and who is
// there to answer. Knows neither clients nor lanes: the Router keeps the calls.
//
// Owner: the Router. Thread: [io]. Bounds: limits.approvals_*; max_grants. Nothing of this outlives
// the process: what was asked is refused with it.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "profile/profile.hpp"
#include "route/approval.hpp"

namespace bulkhead {

class Approvals {
 public:
  static constexpr std::size_t max_grants = 1024;        // beyond: the oldest is forgotten
  static constexpr std::uint64_t max_watch_ms = 60'000;  // then whoever watches says so again

  // One question and the call that it is about.
  struct Waiting {
    ApprovalQuestion question;
    std::uint64_t call = 0;
    std::uint64_t bytes = 0;  // of the call that is kept
  };

  // Why one more cannot wait (the text names the limit); empty: it can.
  std::string refusal(const Limits &limits, std::uint64_t session, std::uint64_t bytes) const;
  // Fills the id and keeps it. Null: the kernel has no random number.
  const ApprovalQuestion *add(Waiting waiting);
  // Null: it does not wait (any more).
  const Waiting *find(std::string_view id) const noexcept;
  const Waiting *find(std::uint64_t call) const noexcept;
  std::optional<Waiting> take(std::uint64_t call);
  ApprovalList list() const;
  std::size_t size() const noexcept { return waiting_.size(); }
  std::size_t waiting_of(std::uint64_t session) const noexcept;

  // An answer that holds for further calls with the question's digest, under the same rule.
  void grant(const ApprovalQuestion &question, const ApprovalScope &scope, std::uint64_t now_ns);
  bool granted(const ApprovalQuestion &question, std::uint64_t now_ns);
  void forget_session(std::uint64_t session);
  // What runs under the server's name is another program now, or none.
  void forget_server(std::string_view server);

  // Somebody looks at the list, and will again within so long (at most max_watch_ms).
  void watch(std::uint64_t now_ns, std::uint64_t ms) noexcept;
  bool watched(std::uint64_t now_ns) const noexcept { return now_ns < watched_until_ns_; }

 private:
  struct Grant {
    std::string digest, rule, server, principal, transport, process_name;
    std::uint64_t session = 0;   // 0: of any session, until until_ns
    std::uint64_t until_ns = 0;  // 0: as long as the session
  };
  using List = std::list<Waiting>;

  List waiting_;  // oldest first
  std::unordered_map<std::uint64_t, List::iterator> by_call_;
  std::unordered_map<std::uint64_t, std::size_t> by_session_;
  std::uint64_t bytes_ = 0;
  std::list<Grant> grants_;  // oldest first
  std::uint64_t watched_until_ns_ = 0;
};

// What of a call's _meta an approval is bound to: without what is another in each call, the
// progress token and the trace. Names and values keep their spelling; empty: nothing is left.
std::string approved_meta(std::string_view meta);
// What of a call's params an approval is bound to.
struct ApprovedTexts {
  std::string_view arguments;  // of a completion all of params
  std::string_view meta;       // of approved_meta()
  std::string_view extra;      // of mcp::extra_params()
};
std::string approval_digest(std::string_view method, std::string_view server, std::string_view name,
                            const ApprovedTexts &texts);

}  // namespace bulkhead
