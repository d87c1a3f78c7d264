// Questions about messages that are too large to be read between two turns of the loop: they are
// studied on the host's pool, one after another, and concluded on the reactor thread, where the
// counts are. Thread: [io].
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
  // Texts of all questions that wait, and of the one that is studied; beyond, a question is
  // refused.
  static constexpr std::size_t kMostBytes = std::size_t{256} << 20;

  // Called on the reactor thread, once for each question that was taken.
  using Answer = std::function<void(std::uint64_t exchange, const Verdict &verdict)>;
  // The rules in force: a question that was studied with others is studied again.
  using Rules = std::function<std::shared_ptr<const RuleSet>()>;
  LargeQuestions(const bh::Host &host, Judge &judge, Judge::Clock clock, Rules rules,
                 Answer answer);
  ~LargeQuestions();

  // BH_PENDING: the answer follows. Else a refusal. All texts are copied. `event`: response for a
  // result.
  bh_status ask(Event event, const Call &call, std::string_view result, bh_error *error);

  // Nothing is answered any more. What is being studied ends by itself.
  void stop() noexcept { stopped_ = true; }

 private:
  struct Question;

  bool begin_first();
  void answer_first(const Verdict &verdict);
  static void study(void *question) noexcept;     // on a thread of the pool
  static void conclude(void *question) noexcept;  // on the reactor thread

  const bh::Host &host_;
  Judge &judge_;
  Judge student_;  // of the thread that studies
  const Rules rules_;
  const Answer answer_;
  std::deque<std::unique_ptr<Question>> waiting_;  // the first is being studied
  std::size_t bytes_ = 0;
  std::atomic<bool> stopped_{false};
};

}  // namespace bulkhead::rules
