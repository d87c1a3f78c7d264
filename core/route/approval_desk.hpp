// Human approval of calls: who is asked, what they are shown, and how the question ends.
// Which calls wait for an answer, Calls knows. Owner: the Router. Thread: [io].
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

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
    // A question has ended, however that was. For the record; it must do nothing else.
    std::function<void(const ApprovalOutcome &)> on_outcome;
    std::string hint;  // for the client of a call that no person could be asked about
  };
  explicit ApprovalDesk(Needs needs) : needs_(std::move(needs)) {}

  // What the policy's "ask" about this call leads to.
  enum class Asked : std::uint8_t {
    granted,  // an answer that was given before holds for it
    waits,    // the question is open, for limits.approval_timeout_ms
    refused   // no person can be asked: *refusal says why
  };
  Asked ask(Call &call, const Message &message, const Gate::Decision &decision,
            Gate::Decision *refusal);
  // Asks the client itself, on the stream of the call, if it can be asked. It may answer inside.
  void ask_client(const Call &call);
  // The call no longer waits: the client that was asked is notified, and the outcome is recorded.
  // Nothing: it did not wait for a person.
  std::optional<ApprovalQuestion> close(const Call &call, ApprovalEnd end,
                                        ApprovalSurface surface = ApprovalSurface::none,
                                        const ApprovalScope &scope = {});
  // The answer holds for further calls, as far as its scope says so.
  void grant(const ApprovalQuestion &question, const ApprovalScope &scope);
  // The refusal of a call that needs an approval; `why` continues "needs approval, ".
  static Gate::Decision unapproved(std::string rule, std::string_view reason, std::string_view why);

  // ---- who looks ----
  // watch_ms: the caller will look again within so long, and so can be asked; at most
  // Approvals::max_watch_ms; 0: it was just a look.
  ApprovalList list(std::uint64_t watch_ms);
  // The exchange that this answer is for. BH_E_NOT_FOUND: it does not wait, or no longer.
  // BH_E_INVALID: there is no such scope.
  Result<std::uint64_t> find(const ApprovalAnswer &answer) const;
  bool somebody_watches() const;

  std::size_t size() const noexcept { return approvals_.size(); }
  std::size_t waiting_of(bh_session session) const noexcept {
    return approvals_.waiting_of(session);
  }
  void forget_session(bh_session session) { approvals_.forget_session(session); }
  // What runs under the server's name is another program now, or none.
  void forget_server(std::string_view server) { approvals_.forget_server(server); }

 private:
  bool asks_client(const Session &session) const;
  ApprovalQuestion question_of(const Call &call, const ApprovedTexts &texts,
                               const Gate::Decision &decision) const;
  std::string refusal_text(const Call &call, bool elicits, std::size_t bytes) const;
  void record(const Call &call, const ApprovalQuestion &question, const ApprovalOutcome *outcome);

  const Needs needs_;
  Approvals approvals_;
};

}  // namespace bulkhead
