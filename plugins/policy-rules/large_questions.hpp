// Evaluates messages that are too large for the reactor thread, one at a time. study() evaluates
// conditions on the host's thread pool. conclude() determines the verdict on the reactor thread,
// which owns the counts. Runs on the reactor thread.
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
  // Limit for the total size of all questions. A question that would exceed it is rejected.
  static constexpr std::size_t kMaxBytes = std::size_t{256} << 20;

  // Called on the reactor thread, once per accepted question.
  using Answer = std::function<void(std::uint64_t exchange, const Verdict &verdict)>;
  // Returns the current rules. A question studied with older rules is studied again.
  using Rules = std::function<std::shared_ptr<const RuleSet>()>;
  LargeQuestions(const bh::Host &host, Judge &judge, Judge::Clock clock, Rules rules,
                 Answer answer);
  ~LargeQuestions();

  // Returns BH_PENDING if an answer will follow; otherwise the question is rejected. All strings
  // are copied. For a result, `event` is response.
  bh_status ask(Event event, const Call &call, std::string_view result, bh_error *error);

  // Suppresses all answers. A running evaluation continues to its end.
  void stop() noexcept { stopped_ = true; }

 private:
  struct Question;

  bool begin_first();
  void answer_first(const Verdict &verdict);
  static void study(Question &q) noexcept;     // runs on a pool thread
  static void conclude(Question &q) noexcept;  // runs on the reactor thread

  const bh::Host &host_;
  Judge &judge_;
  Judge study_judge_;  // used only on the pool thread
  const Rules rules_;
  const Answer answer_;
  std::deque<std::unique_ptr<Question>> waiting_;  // the first question is being evaluated
  std::size_t bytes_ = 0;
  std::atomic<bool> stopped_{false};
};

}  // namespace bulkhead::rules
