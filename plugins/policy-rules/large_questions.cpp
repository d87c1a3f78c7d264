#include "large_questions.hpp"

#include <array>
#include <string>
#include <utility>

namespace bulkhead::rules {
namespace {

Verdict refusal(std::string_view reason) {
  Verdict out;
  out.kind = BH_VERDICT_BLOCK;
  out.rule = kEvaluationError;
  out.reason = reason;
  return out;
}

}  // namespace

struct LargeQuestions::Question {
  LargeQuestions *owner = nullptr;
  std::shared_ptr<const RuleSet> set;
  Event event = Event::request;
  std::string text;  // all strings of the call and the result
  Call call;
  std::string_view result;
  Findings findings;
  bool studied = false;
};

LargeQuestions::LargeQuestions(const bh::Host &host, Judge &judge, Judge::Clock clock, Rules rules,
                               Answer answer)
    : host_(host),
      judge_(judge),
      study_judge_(std::move(clock)),
      rules_(std::move(rules)),
      answer_(std::move(answer)) {}

LargeQuestions::~LargeQuestions() = default;

bh_status LargeQuestions::ask(Event event, const Call &call, std::string_view result,
                              bh_error *error) {
  auto question = std::make_unique<Question>();
  Question &q = *question;
  q.owner = this;
  q.event = event;
  q.call = call;
  q.result = result;
  const std::array texts = {&q.call.transport, &q.call.peer,         &q.call.principal,
                            &q.call.method,    &q.call.process_name, &q.call.server,
                            &q.call.name,      &q.call.arguments,    &q.call.meta,
                            &q.result,         &q.call.definition,   &q.call.argument,
                            &q.call.context,   &q.call.extra,        &q.call.claimed_name};
  std::size_t bytes = 0;
  for (const std::string_view *each : texts) bytes += each->size();
  if (bytes > kMaxBytes - bytes_) {
    return bh::fail(error, BH_E_LIMIT,
                    "more than " + std::to_string(kMaxBytes >> 20) +
                        " MiB would be queued for evaluation; try again later");
  }
  q.text.reserve(bytes);
  for (std::string_view *each : texts) {
    const std::size_t at = q.text.size();
    q.text += *each;
    *each = std::string_view(q.text).substr(at);
  }
  bytes_ += bytes;
  waiting_.push_back(std::move(question));
  if (waiting_.size() > 1 || begin_first()) return BH_PENDING;
  bytes_ -= bytes;
  waiting_.clear();
  return bh::fail(error, BH_E_LIMIT, "the pool for blocking work is full; try again later");
}

bool LargeQuestions::begin_first() {
  Question &first = *waiting_.front();
  first.set = rules_();
  first.studied = false;
  return host_.run_blocking(bh::blocking_work<study, conclude>(&first)) == BH_OK;
}

void LargeQuestions::study(Question &q) noexcept {
  if (q.owner->stopped_) return;
  try {
    q.findings = q.owner->study_judge_.study(*q.set, q.event, q.call, q.result);
    q.studied = true;
  } catch (const std::exception &) {  // out of memory
  }
}

void LargeQuestions::conclude(Question &q) noexcept {
  LargeQuestions &all = *q.owner;
  if (all.stopped_) return;
  Verdict verdict = refusal("out of memory while evaluating the rules");
  try {
    // If the rules have been reloaded, the message is evaluated again with the new rules.
    const bool reloaded = q.set != all.rules_();
    if (reloaded && all.begin_first()) return;
    if (q.studied) {
      verdict = all.judge_.conclude(*q.set, q.event, q.call, q.result, q.findings);
    } else if (reloaded) {
      verdict = refusal("the pool for blocking work is full");
    }
  } catch (const std::exception &) {  // out of memory
  }
  all.answer_first(verdict);
  while (!all.waiting_.empty() && !all.begin_first())
    all.answer_first(refusal("the pool for blocking work is full"));
}

// Removes the first message even if its verdict cannot be reported, so that the next one is
// evaluated.
void LargeQuestions::answer_first(const Verdict &verdict) noexcept {
  const std::unique_ptr<Question> first = std::move(waiting_.front());
  waiting_.pop_front();
  bytes_ -= first->text.size();
  try {
    answer_(first->call.exchange, verdict);
  } catch (const std::exception &) {  // out of memory
    host_.log(BH_LOG_ERROR, "the verdict for a large message was not reported: out of memory");
  }
}

}  // namespace bulkhead::rules
