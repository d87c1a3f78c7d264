// Human approval of calls: finds an approver, composes the question, and records its outcome. The
// Calls class parks the waiting calls.
//
// Owner: the Router. Runs on the reactor thread.
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
    // Called when a question has been resolved or a grant has ended; see ApprovalOutcome. The
    // function must only record the outcome.
    std::function<void(const ApprovalOutcome &)> on_outcome;
    std::string hint;  // explains how to approve; sent to the client if no approver is present
  };
  explicit ApprovalDesk(Needs needs) : needs_(std::move(needs)) {}

  // The result of ask().
  enum class Asked : std::uint8_t {
    granted,  // an earlier answer covers the call
    waits,    // the question is pending for up to limits.approval_timeout_ms
    refused   // the question cannot be asked; see *refusal
  };
  // `definition` is the hash of the tool's listed definition, or all zeros if it is not listed.
  Asked ask(Call &call, const Message &message, const DefinitionHash &definition,
            const Gate::Decision &decision, Gate::Decision *refusal);
  // If the profile permits approval forms, and the call's client supports forms and can be asked
  // now, sends it the form. The client may answer before this function returns.
  void ask_client(Call &call);
  // Ends the question about the call: withdraws an open form from the client and records the
  // outcome. Returns nullopt if the call has no question.
  std::optional<ApprovalQuestion> close(const Call &call, ApprovalEnd end,
                                        ApprovalSurface surface = ApprovalSurface::none,
                                        const ApprovalScope &scope = {});
  // Allows further calls within the scope of the answer. Does nothing for a single call.
  void grant(const ApprovalQuestion &question, const ApprovalScope &scope);
  // Returns a refusal for a call that needs approval. `why` completes the message "needs approval,
  // ...".
  static Gate::Decision unapproved(std::string rule, std::string_view reason, std::string_view why);

  // ---- approvers ----
  // Lists pending questions and grants. If watch_ms is not 0, the caller is an approver that lists
  // again within this time, at most Approvals::max_watch_ms. If watch_ms is 0, the caller only
  // reads the list.
  ApprovalList list(std::uint64_t watch_ms);
  // Returns the id of the call that waits for this answer. Returns BH_E_NOT_FOUND if no question is
  // pending under this id, and BH_E_INVALID if the scope is unknown or not valid for this call.
  Result<std::uint64_t> find(const ApprovalAnswer &answer) const;
  // Ends a grant. Returns BH_E_NOT_FOUND if there is no grant with this id.
  Result<void> revoke(const ApprovalAnswer &answer);
  bool somebody_watches() const;

  std::size_t size() const noexcept { return approvals_.size(); }
  void forget_session(bh_session session) { approvals_.forget_session(session); }
  // Called when a reload has removed or replaced the server.
  void forget_server(std::string_view server);
  // Called when the rules have changed. Ends the grants that allow calls to a tool with any
  // arguments.
  void rules_changed();

 private:
  bool asks_client(const Session &session) const;
  ApprovalQuestion question_of(const Call &call, const ApprovedTexts &texts,
                               const Gate::Decision &decision) const;
  bool may_ask(const Call &call, bool elicits, std::size_t bytes, const Gate::Decision &decision,
               Gate::Decision *refusal) const;
  std::string refusal_text(const Call &call, bool elicits, std::size_t bytes) const;
  void record(const Call &call, const ApprovalQuestion &question, const ApprovalOutcome *outcome);
  void end_grants(const std::vector<ApprovalGrant> &grants, ApprovalSurface surface);

  const Needs needs_;
  Approvals approvals_;
};

}  // namespace bulkhead
