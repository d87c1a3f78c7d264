// Evaluates messages that are too large for the reactor thread, one at a time. First, study()
// evaluates the conditions on the host's thread pool. Then conclude() determines the verdict on the
// reactor thread, which owns the counts.
//
// Public functions run on the reactor thread.
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
  // Limit on the total size of all pending messages.
  static constexpr std::size_t kMaxBytes = std::size_t{256} << 20;

  // Reports the verdict for a message. Called on the reactor thread, once per accepted message
  // unless stop() is called first.
  using Answer = std::function<void(std::uint64_t exchange, const Verdict &verdict)>;
  // Returns the current rules. If the rules change during an evaluation, the message is evaluated
  // again.
  using Rules = std::function<std::shared_ptr<const RuleSet>()>;
  LargeQuestions(const bh::Host &host, Judge &judge, Judge::Clock clock, Rules rules,
                 Answer answer);
  ~LargeQuestions();

  // Copies and queues a message. Returns BH_PENDING if the Answer callback will report the verdict.
  // Fails with BH_E_LIMIT if the size limit is exceeded or the host's thread pool is full. If the
  // message is a result, `event` is response.
  bh_status ask(Event event, const Call &call, std::string_view result, bh_error *error);

  // Suppresses all later callbacks. A running evaluation is not interrupted.
  void stop() noexcept { stopped_ = true; }

 private:
  struct Question;

  bool begin_first();
  void answer_first(const Verdict &verdict) noexcept;
  static void study(Question &q) noexcept;     // runs on a pool thread
  static void conclude(Question &q) noexcept;  // runs on the reactor thread

  const bh::Host &host_;
  Judge &judge_;
  Judge study_judge_;  // used only on the pool thread
  const Rules rules_;
  const Answer answer_;
  std::deque<std::unique_ptr<Question>> waiting_;  // the first message is being evaluated
  std::size_t bytes_ = 0;
  std::atomic<bool> stopped_{false};
};

}  // namespace bulkhead::rules
