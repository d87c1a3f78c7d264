// Evaluates messages that are too large for the reactor thread, one after the other. Conditions are
// evaluated on the host's pool (study); the verdict is completed on the reactor thread, which has
// the counts (conclude). Runs on the reactor thread.
#pragma once

#include <bulkhead/abi/ext/policy.h>

#include <atomic>
#include <bulkhead/cpp/host.hpp>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string_view>

#include "judge.hpp"

namespace bulkhead::rules {

class LargeQuestions {
 public:
  // Limit for the total size of the current and all pending questions. Questions beyond the limit
  // are rejected.
  static constexpr std::size_t kMaxBytes = std::size_t{256} << 20;

  // Called on the reactor thread, once for each accepted question.
  using Answer = std::function<void(std::uint64_t exchange, const Verdict &verdict)>;
  // Returns the current rules. A question that was studied with older rules is studied again.
  using Rules = std::function<std::shared_ptr<const RuleSet>()>;
  LargeQuestions(const bh::Host &host, Judge &judge, Judge::Clock clock, Rules rules,
                 Answer answer);
  ~LargeQuestions();

  // Returns BH_PENDING if the answer follows; otherwise the question is rejected. All strings are
  // copied. For a result, `event` is response.
  bh_status ask(Event event, const Call &call, std::string_view result, bh_error *error);

  // Suppresses all answers. An evaluation in progress runs to completion.
  void stop() noexcept { stopped_ = true; }

 private:
  struct Question;

  bool begin_first();
  void answer_first(const Verdict &verdict);
  static void study(Question &q) noexcept;     // on a pool thread
  static void conclude(Question &q) noexcept;  // on the reactor thread

  const bh::Host &host_;
  Judge &judge_;
  Judge study_judge_;  // used on the pool thread
  const Rules rules_;
  const Answer answer_;
  std::deque<std::unique_ptr<Question>> waiting_;  // the first question is being evaluated
  std::size_t bytes_ = 0;
  std::atomic<bool> stopped_{false};
};

}  // namespace bulkhead::rules
