#include "route/parked_inputs.hpp"

#include <algorithm>
#include <charconv>

namespace bulkhead {
namespace {

constexpr std::uint64_t ns_per_ms = 1'000'000;
// The memory that is counted for the entry itself, its place in the tables, and a waiting request.
constexpr std::size_t bytes_of_entry = 512;

std::string at_limit(std::string_view what, std::uint64_t limit) {
  return "too many " + std::string(what) + " (limit: " + std::to_string(limit) + ")";
}

template <class Number>
bool read_number(std::string_view text, Number *out) noexcept {
  const char *const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *out);
  return error == std::errc() && stop == end;
}

}  // namespace

std::string ParkedTicket::text() const {
  return std::to_string(number) + "." + std::to_string(round);
}

std::optional<ParkedTicket> ParkedTicket::read(std::string_view text) noexcept {
  ParkedTicket ticket;
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos || !read_number(text.substr(0, dot), &ticket.number) ||
      !read_number(text.substr(dot + 1), &ticket.round) || ticket.text() != text) {
    return std::nullopt;
  }
  return ticket;
}

std::expected<std::uint64_t, std::string> ParkedInputs::park(std::string_view principal,
                                                             std::uint64_t call, ParkedAsk ask,
                                                             std::uint64_t now_ns) {
  if (std::string why = refusal(principal, ask); !why.empty()) return std::unexpected(why);
  const std::uint64_t number = entries_.insert(Entry{{}, std::string(principal), call, 0, 0});
  ++by_principal_[std::string(principal)];
  Entry &entry = *entries_.get(number);
  entry.call.add_ask(std::move(ask));
  count_bytes(entry);
  set_deadline(number, entry, now_ns + window_ms * ns_per_ms);
  return number;
}

void ParkedInputs::wait(std::uint64_t number, std::uint64_t request) {
  if (Entry *entry = entries_.get(number)) entry->call.wait(request);
}

std::string ParkedInputs::add_ask(std::uint64_t number, ParkedAsk ask, std::uint64_t now_ns) {
  Entry *entry = entries_.get(number);
  if (entry == nullptr) return "the call has ended";
  if (!fits(ask.params.size())) {
    return at_limit("bytes of parked calls", limits_.bytes);
  }
  const bool worked = entry->call.phase() == ParkedInput::Phase::working;
  if (!entry->call.add_ask(std::move(ask))) {
    return "a call has at most " + std::to_string(ParkedInput::max_asks) + " open requests and " +
           std::to_string(ParkedInput::max_rounds) + " rounds of them";
  }
  count_bytes(*entry);
  if (worked) set_deadline(number, *entry, now_ns + window_ms * ns_per_ms);
  return {};
}

void ParkedInputs::remove_ask(std::uint64_t number, std::uint64_t ask) {
  Entry *entry = entries_.get(number);
  if (entry != nullptr && entry->call.remove_ask(ask)) count_bytes(*entry);
}

std::expected<ParkedInput::Retry, RetryFault> ParkedInputs::retry(std::string_view principal,
                                                                  const ParkedTicket &ticket,
                                                                  std::uint64_t request,
                                                                  std::string_view responses,
                                                                  std::uint64_t now_ns) {
  Entry *entry = entries_.get(ticket.number);
  if (entry == nullptr || entry->principal != principal) {
    return std::unexpected(RetryFault::unknown_call);
  }
  const ParkedInput::Phase before = entry->call.phase();
  auto result = entry->call.retry(request, ticket.round, responses);
  if (!result) return result;
  count_bytes(*entry);
  using enum ParkedInput::Phase;
  const ParkedInput::Phase after = entry->call.phase();
  if (before == asked && after == collecting) {
    set_deadline(ticket.number, *entry, now_ns + window_ms * ns_per_ms);
  } else if (after == working) {
    set_deadline(ticket.number, *entry, 0);  // the call has a deadline of its own
  }
  return result;
}

bool ParkedInputs::leave(std::uint64_t number, std::uint64_t request) {
  Entry *entry = entries_.get(number);
  if (entry == nullptr || !entry->call.leave(request) || entry->call.is_awaited()) return false;
  using enum ParkedInput::Phase;
  return entry->call.phase() == working || entry->call.phase() == collecting;
}

std::vector<std::uint64_t> ParkedInputs::forget(std::uint64_t number) {
  Entry *entry = entries_.get(number);
  if (entry == nullptr) return {};
  std::vector<std::uint64_t> requests = entry->call.take_waiting();
  erase(number);
  return requests;
}

std::vector<std::uint64_t> ParkedInputs::end(std::uint64_t number, std::string_view text,
                                             std::uint64_t now_ns, std::uint32_t http_status) {
  Entry *entry = entries_.get(number);
  if (entry == nullptr || entry->call.phase() == ParkedInput::Phase::ended) return {};
  const bool asked = entry->call.phase() == ParkedInput::Phase::asked;
  std::vector<std::uint64_t> requests = entry->call.take_waiting();
  entry->call.end(std::nullopt);
  count_bytes(*entry);
  if (text.size() <= max_end_bytes && fits(text.size()))
    entry->call.end(std::string(text), http_status);
  count_bytes(*entry);
  entry->call_number = 0;
  const std::uint64_t asked_until = asked ? entry->deadline_ns : 0;
  set_deadline(number, *entry, std::max(asked_until, now_ns + rejoin_ms * ns_per_ms));
  return requests;
}

std::vector<ParkedInputs::Due> ParkedInputs::due(std::uint64_t now_ns) {
  std::vector<Due> out;
  while (!deadlines_.empty() && deadlines_.begin()->first <= now_ns) {
    const std::uint64_t number = deadlines_.begin()->second;
    Due due = take_due(number, *entries_.get(number), now_ns);
    if (due.number != 0) out.push_back(std::move(due));
  }
  return out;
}

ParkedInputs::Due ParkedInputs::take_due(std::uint64_t number, Entry &entry, std::uint64_t now_ns) {
  Due due{Due::Kind::round, number, entry.call_number, {}};
  switch (entry.call.phase()) {
    case ParkedInput::Phase::collecting:
      if (entry.call.close_round()) {
        due.requests = entry.call.take_waiting();
        set_deadline(number, entry, now_ns + entry.call.answer_ms() * ns_per_ms);
        return due;
      }
      set_deadline(number, entry, 0);
      return {};  // the asks have been withdrawn
    case ParkedInput::Phase::asked:
      due.kind = Due::Kind::unanswered;
      break;
    case ParkedInput::Phase::working:
    case ParkedInput::Phase::ended:
      due.kind = Due::Kind::forgotten;
      break;
  }
  erase(number);
  return due;
}

std::optional<std::uint64_t> ParkedInputs::next_ns() const noexcept {
  if (deadlines_.empty()) return std::nullopt;
  return deadlines_.begin()->first;
}

const ParkedInput *ParkedInputs::find(std::uint64_t number) const noexcept {
  const Entry *entry = entries_.get(number);
  return entry == nullptr ? nullptr : &entry->call;
}

ParkedTicket ParkedInputs::ticket(std::uint64_t number) const noexcept {
  const ParkedInput *call = find(number);
  return call == nullptr ? ParkedTicket{} : ParkedTicket{number, call->round()};
}

std::uint64_t ParkedInputs::call_of(std::uint64_t number) const noexcept {
  const Entry *entry = entries_.get(number);
  return entry == nullptr ? 0 : entry->call_number;
}

std::size_t ParkedInputs::size_of(std::string_view principal) const {
  const auto found = by_principal_.find(std::string(principal));
  return found == by_principal_.end() ? 0 : found->second;
}

// Returns the reason why this principal cannot park another call, or an empty string if it can.
std::string ParkedInputs::refusal(std::string_view principal, const ParkedAsk &ask) {
  while (size_of(principal) >= limits_.calls_per_principal) {
    if (make_room(principal)) continue;
    return at_limit("parked calls of this client", limits_.calls_per_principal);
  }
  while (entries_.size() >= limits_.calls) {
    if (make_room(std::nullopt)) continue;
    return at_limit("parked calls", limits_.calls);
  }
  while (!fits(bytes_of_entry + ask.params.size())) {
    if (make_room(std::nullopt)) continue;
    return at_limit("bytes of parked calls", limits_.bytes);
  }
  return {};
}

// Removes the oldest stored end of this principal or, without a principal, of all principals.
// Returns false if there is none.
bool ParkedInputs::make_room(std::optional<std::string_view> principal) {
  for (const auto &[time, number] : deadlines_) {
    const Entry &entry = *entries_.get(number);
    if (entry.call.phase() != ParkedInput::Phase::ended) continue;
    if (principal && entry.principal != *principal) continue;
    erase(number);
    return true;
  }
  return false;
}

bool ParkedInputs::fits(std::size_t bytes) const noexcept {
  return bytes <= limits_.bytes && bytes_ <= limits_.bytes - bytes;
}

void ParkedInputs::count_bytes(Entry &entry) {
  bytes_ -= entry.bytes;
  entry.bytes = bytes_of_entry + entry.principal.size() + entry.call.bytes();
  bytes_ += entry.bytes;
}

void ParkedInputs::set_deadline(std::uint64_t number, Entry &entry, std::uint64_t deadline_ns) {
  if (entry.deadline_ns != 0) deadlines_.erase({entry.deadline_ns, number});
  entry.deadline_ns = deadline_ns;
  if (deadline_ns != 0) deadlines_.insert({deadline_ns, number});
}

void ParkedInputs::erase(std::uint64_t number) {
  Entry &entry = *entries_.get(number);
  set_deadline(number, entry, 0);
  bytes_ -= entry.bytes;
  const auto count = by_principal_.find(entry.principal);
  if (--count->second == 0) by_principal_.erase(count);
  entries_.erase(number);
}

}  // namespace bulkhead
