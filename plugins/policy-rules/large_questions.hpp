// Questions about messages that are too large for the reactor thread: evaluated one after the other
// on the host's pool (study), and completed on the reactor thread, which has the counts (conclude).
// Thread: [io].
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
  // Limit for the texts of all waiting questions and the current one; questions beyond are
  // rejected.
  static constexpr std::size_t kMaxBytes = std::size_t{256} << 20;

  // Called on the reactor thread, once for each accepted question.
  using Answer = std::function<void(std::uint64_t exchange, const Verdict &verdict)>;
  // The current rules: a question studied with older rules is studied again.
  using Rules = std::function<std::shared_ptr<const RuleSet>()>;
  LargeQuestions(const bh::Host &host, Judge &judge, Judge::Clock clock, Rules rules,
                 Answer answer);
  ~LargeQuestions();

  // BH_PENDING: the answer follows; otherwise the question is rejected. All texts are copied.
  // `event`: response for a result.
  bh_status ask(Event event, const Call &call, std::string_view result, bh_error *error);

  // Suppresses all answers. A running study ends normally.
  void stop() noexcept { stopped_ = true; }

 private:
  struct Question;

  bool begin_first();
  void answer_first(const Verdict &verdict);
  static void study(Question &q) noexcept;     // on a pool thread
  static void conclude(Question &q) noexcept;  // on the reactor thread

  const bh::Host &host_;
  Judge &judge_;
  Judge study_judge_;  // of the pool thread
  const Rules rules_;
  const Answer answer_;
  std::deque<std::unique_ptr<Question>> waiting_;  // the first question is being studied
  std::size_t bytes_ = 0;
  std::atomic<bool> stopped_{false};
};

}  // namespace bulkhead::rules
