// Human approval of calls: finds an approver, composes the question, and records its end. Calls
// parks the calls that wait.
//
// Thread: I/O thread. Owned by the Router.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/items.hpp"
#include "profile/profile.hpp"
#include "reactor/reactor.hpp"
#include "route/approvals.hpp"
#include "route/asks.hpp"
#include "route/call.hpp"
#include "route/client_answers.hpp"
#include "route/counters.hpp"
#include "route/gate.hpp"
#include "route/message.hpp"
#include "route/recorder.hpp"

namespace bulkhead {

class ApprovalDesk {
 public:
  struct Needs {
    const Profile &profile;
    Reactor &reactor;
    Recorder &recorder;
    RouterCounters &counters;
    Asks &asks;
    ClientAnswers &answers;
    // A question has ended. The function must only record it.
    std::function<void(const ApprovalOutcome &)> on_outcome;
    std::string hint;  // how to approve, for the client of a call without an approver
  };
  explicit ApprovalDesk(Needs needs) : needs_(std::move(needs)) {}

  // The result of a policy's "ask".
  enum class Asked : std::uint8_t {
    granted,  // an earlier answer covers the call
    waits,    // the question is pending, for limits.approval_timeout_ms
    refused   // there is no approver: see *refusal
  };
  // `definition`: of the tool, as it is listed.
  Asked ask(Call &call, const Message &message, const DefinitionHash &definition,
            const Gate::Decision &decision, Gate::Decision *refusal);
  // Sends the approval form to the client on the stream of the call, if the client supports forms.
  // The client may answer inside.
  void ask_client(const Call &call);
  // Ends the question about the call: notifies the client that shows its form and records the
  // outcome. Empty: the call had no question.
  std::optional<ApprovalQuestion> close(const Call &call, ApprovalEnd end,
                                        ApprovalSurface surface = ApprovalSurface::none,
                                        const ApprovalScope &scope = {});
  // Grants further calls within the scope of the answer.
  void grant(const ApprovalQuestion &question, const ApprovalScope &scope);
  // Composes the refusal of a call that needs approval; `why` continues "needs approval, ".
  static Gate::Decision unapproved(std::string rule, std::string_view reason, std::string_view why);

  // ---- approvers ----
  // Lists pending questions. watch_ms: the caller is an approver and lists again within this time,
  // at most Approvals::max_watch_ms; 0: it only reads.
  ApprovalList list(std::uint64_t watch_ms);
  // The call that this answer is for. BH_E_NOT_FOUND: no such question is pending. BH_E_INVALID:
  // the scope is unknown, or not for this call.
  Result<std::uint64_t> find(const ApprovalAnswer &answer) const;
  // Ends a grant. BH_E_NOT_FOUND: there is none with this id.
  Result<void> revoke(const ApprovalAnswer &answer);
  bool somebody_watches() const;

  std::size_t size() const noexcept { return approvals_.size(); }
  std::size_t waiting_of(bh_session session) const noexcept {
    return approvals_.waiting_of(session);
  }
  void forget_session(bh_session session) { approvals_.forget_session(session); }
  // The server was removed or its definition has changed.
  void forget_server(std::string_view server) { approvals_.forget_server(server); }
  // Ends the grants for any arguments of a tool: the person had other rules in view.
  void rules_changed();

 private:
  bool asks_client(const Session &session) const;
  ApprovalQuestion question_of(const Call &call, const ApprovedTexts &texts,
                               const Gate::Decision &decision) const;
  std::string refusal_text(const Call &call, bool elicits, std::size_t bytes) const;
  void record(const Call &call, const ApprovalQuestion &question, const ApprovalOutcome *outcome);
  void end_grants(const std::vector<ApprovalGrant> &grants, ApprovalSurface surface);

  const Needs needs_;
  Approvals approvals_;
};

}  // namespace bulkhead
