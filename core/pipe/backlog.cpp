#include "pipe/backlog.hpp"

#include <algorithm>
#include <utility>

namespace bulkhead::pipe {

std::uint64_t Backlog::add(const Line &line) {
  const std::size_t bytes = line.id.size() + line.method.size();
  const bool full =
      pending_.size() >= limits_.max_pending || pending_bytes_ + bytes > limits_.max_pending_bytes;
  if (full) return 0;
  const std::uint64_t exchange = next_exchange();
  pending_.emplace(exchange, Pending{std::string(line.id), std::string(line.method)});
  pending_bytes_ += bytes;
  return exchange;
}

const Backlog::Pending *Backlog::find(std::uint64_t exchange) const {
  const auto at = pending_.find(exchange);
  return at == pending_.end() ? nullptr : &at->second;
}

void Backlog::forget(std::uint64_t exchange) {
  const auto at = pending_.find(exchange);
  if (at == pending_.end()) return;
  pending_bytes_ -= at->second.id.size() + at->second.method.size();
  pending_.erase(at);
}

std::vector<std::uint64_t> Backlog::sent() const {
  std::vector<std::uint64_t> sent;
  for (const auto &[exchange, unused] : pending_) sent.push_back(exchange);
  for (const Waiting &message : waiting_) std::erase(sent, message.exchange);
  std::sort(sent.begin(), sent.end());
  return sent;
}

bool Backlog::keep(std::uint32_t kind, std::uint64_t exchange, std::string_view text) {
  if (waiting_bytes_ + text.size() > limits_.max_waiting_bytes) return false;
  waiting_bytes_ += text.size();
  waiting_.push_back({kind, exchange, std::string(text)});
  return true;
}

Backlog::Waiting Backlog::take_first() {
  Waiting message = std::move(waiting_.front());
  waiting_.pop_front();
  waiting_bytes_ -= message.text.size();
  return message;
}

void Backlog::move_last_to_front() {
  std::rotate(waiting_.begin(), waiting_.end() - 1, waiting_.end());
}

std::deque<Backlog::Waiting> Backlog::take_waiting() {
  waiting_bytes_ = 0;
  return std::exchange(waiting_, {});
}

void Backlog::note_question(std::string_view text) {
  const Line line = classify(text);
  if (line.id.empty() || line.method.empty() || line.id.size() > limits_.max_question_id) return;
  if (questions_.size() == limits_.max_questions) questions_.pop_front();
  questions_.emplace_back(line.id);
}

bool Backlog::take_question(std::string_view id) {
  const auto at = std::find(questions_.begin(), questions_.end(), id);
  if (at == questions_.end()) return false;
  questions_.erase(at);
  return true;
}

void Backlog::clear() {
  pending_.clear();
  waiting_.clear();
  pending_bytes_ = waiting_bytes_ = 0;
}

}  // namespace bulkhead::pipe
