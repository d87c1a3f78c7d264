#include "route/parked_input.hpp"

#include <algorithm>
#include <utility>

#include "bulkhead/cpp/json_writer.hpp"
#include "mcp/for_each.hpp"

namespace bulkhead {

std::string_view to_string(RetryFault fault) noexcept {
  switch (fault) {
    case RetryFault::unknown_call:
      return "the call of this requestState has ended, and may have run; its result is no longer "
             "stored";
    case RetryFault::evicted:
      return "the call of this requestState was cancelled, and may have run: too many calls wait "
             "for "
             "input, and this client has the most";
    case RetryFault::outdated:
      return "this requestState has been answered before: a later one has replaced it";
    case RetryFault::other_answers:
      return "this requestState has been answered before, with other inputResponses";
    case RetryFault::malformed:
      return "inputResponses must be an object with one object for each key";
    case RetryFault::too_many:
      return "too many requests with this requestState wait for its call";
  }
  return "requestState is invalid";
}

std::size_t ParkedInput::bytes() const noexcept {
  std::size_t sum = end_.size();
  for (const Open &open : asks_) sum += sizeof open + open.method.size() + open.params.size();
  return sum;
}

std::uint64_t ParkedInput::answer_ms() const noexcept {
  std::uint64_t most = 0;
  for (const Open &open : asks_) {
    if (open.round == round_) most = std::max(most, open.answer_ms);
  }
  return most;
}

bool ParkedInput::add_ask(ParkedAsk ask) {
  if (phase_ == Phase::ended || asks_.size() >= max_asks || round_ >= max_rounds) return false;
  asks_.push_back({std::move(ask), "input-" + std::to_string(++keys_), 0});
  if (phase_ == Phase::working) phase_ = Phase::collecting;
  return true;
}

bool ParkedInput::remove_ask(std::uint64_t ask) {
  return std::erase_if(asks_, [ask](const Open &open) { return open.ask == ask; }) != 0;
}

bool ParkedInput::close_round() {
  if (phase_ != Phase::collecting) return false;
  if (asks_.empty()) {
    phase_ = Phase::working;
    return false;
  }
  ++round_;
  for (Open &open : asks_) open.round = round_;
  phase_ = Phase::asked;
  return true;
}

std::string ParkedInput::input_requests() const {
  std::string out;
  bh::json::Writer json(&out);
  json.begin_object();
  for (const Open &open : asks_) {
    if (open.round != round_) continue;
    json.key(open.key).begin_object().member("method", open.method);
    if (!open.params.empty()) json.member("params", bh::json::Raw{open.params});
    json.end_object();
  }
  json.end_object();
  return out;
}

std::expected<ParkedInput::Retry, RetryFault> ParkedInput::retry(std::uint64_t request,
                                                                 std::uint32_t round,
                                                                 std::string_view responses) {
  if (round == 0) return std::unexpected(RetryFault::outdated);
  if (round == answered_round_) return join(request, responses);
  if (phase_ == Phase::ended) {
    // The call ended before the last round was answered.
    if (round != round_) return std::unexpected(RetryFault::outdated);
    return Retry{};
  }
  if (phase_ != Phase::asked || round != round_) return std::unexpected(RetryFault::outdated);
  return first_answers(request, responses);
}

std::expected<ParkedInput::Retry, RetryFault> ParkedInput::first_answers(
    std::uint64_t request, std::string_view responses) {
  auto answers = known_answers(responses);
  if (!answers) return std::unexpected(answers.error());
  if (answers->empty() && has_ask_in_round()) return Retry{};  // asks again
  const auto digest = mcp::value_digest(responses.empty() ? "{}" : responses);
  if (!digest) return std::unexpected(RetryFault::malformed);
  answered_round_ = round_;
  answered_ = *digest;
  for (const Answer &answer : *answers) remove_ask(answer.ask);
  phase_ = asks_.empty() ? Phase::working : Phase::collecting;
  wait(request);
  return Retry{std::move(*answers)};
}

std::expected<ParkedInput::Retry, RetryFault> ParkedInput::join(std::uint64_t request,
                                                                std::string_view responses) {
  if (mcp::value_digest(responses.empty() ? "{}" : responses) != answered_) {
    return std::unexpected(RetryFault::other_answers);
  }
  if (phase_ == Phase::asked || phase_ == Phase::ended) return Retry{};
  if (waiting_.size() >= max_waiting) return std::unexpected(RetryFault::too_many);
  wait(request);
  return Retry{};
}

std::expected<std::vector<ParkedInput::Answer>, RetryFault> ParkedInput::known_answers(
    std::string_view responses) const {
  std::vector<Answer> answers;
  if (responses.empty()) return answers;
  if (!responses.starts_with('{')) return std::unexpected(RetryFault::malformed);
  std::string scratch;
  const bool well =
      mcp::for_each_member(responses, [&](std::string_view key, std::string_view result) {
        const Open *open = asked(mcp::unquote(key, &scratch));
        if (open == nullptr) return true;
        const auto same = [open](const Answer &answer) { return answer.ask == open->ask; };
        if (!result.starts_with('{') || std::any_of(answers.begin(), answers.end(), same))
          return false;
        answers.push_back({open->ask, result});
        return true;
      });
  if (!well) return std::unexpected(RetryFault::malformed);
  return answers;
}

const ParkedInput::Open *ParkedInput::asked(std::string_view key) const {
  const auto found = std::find_if(asks_.begin(), asks_.end(), [&](const Open &open) {
    return open.round == round_ && open.key == key;
  });
  return found == asks_.end() ? nullptr : &*found;
}

bool ParkedInput::has_ask_in_round() const noexcept {
  return std::any_of(asks_.begin(), asks_.end(),
                     [this](const Open &open) { return open.round == round_; });
}

void ParkedInput::end(std::string text, std::uint32_t http_status) {
  http_status_ = http_status;
  phase_ = Phase::ended;
  asks_.clear();
  end_ = std::move(text);
}

bool ParkedInput::leave(std::uint64_t request) {
  return std::erase(waiting_, request) != 0;
}

}  // namespace bulkhead
