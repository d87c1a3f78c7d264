#include "route/parked_inputs.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "route/json_rpc.hpp"
#include "route/protocol.hpp"

namespace bulkhead {
namespace {

constexpr std::uint64_t ns_per_ms = 1'000'000;
// Memory that is counted for each entry in addition to its strings: the entry itself, its place in
// the tables, and one waiting request.
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

std::string name_of_peer(const ParkedOwner &owner) {
  return owner.principal + '\n' + owner.peer;
}

// Returns the end to store in place of a call's end of this size, which does not fit.
std::string too_large(std::size_t bytes) {
  return R"("error":)" +
         error_object(code::internal_error,
                      "the call has run, but its response of " + std::to_string(bytes) +
                          " bytes was too large to be stored until this request arrived; the same "
                          "request without requestState would run the call again");
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

std::expected<std::uint64_t, std::string> ParkedInputs::park(ParkedOwner owner, std::uint64_t call,
                                                             ParkedAsk ask, std::uint64_t now_ns) {
  const Need need{owner, {1, bytes_of_entry + ask.params.size(), 1}};
  if (std::string why = make_room(need); !why.empty()) return std::unexpected(why);
  const std::uint64_t number = entries_.insert(Entry{{}, std::move(owner), call, ++sequence_, 0});
  Entry &entry = *entries_.get(number);
  entry.call.add_ask(std::move(ask));
  count(entry);
  set_deadline(number, entry, now_ns + window_ms * ns_per_ms);
  return number;
}

void ParkedInputs::wait(std::uint64_t number, std::uint64_t request) {
  if (Entry *entry = entries_.get(number)) entry->call.wait(request);
}

std::string ParkedInputs::add_ask(std::uint64_t number, ParkedAsk ask, std::uint64_t now_ns) {
  Entry *entry = entries_.get(number);
  if (entry == nullptr) return "the call has ended";
  const Need need{entry->owner, {0, ask.params.size(), 1}, number};
  if (std::string why = make_room(need); !why.empty()) return why;
  const bool worked = entry->call.phase() == ParkedInput::Phase::working;
  if (!entry->call.add_ask(std::move(ask))) {
    return "the call has reached its limit of " + std::to_string(ParkedInput::max_asks) +
           " open requests or " + std::to_string(ParkedInput::max_rounds) + " rounds";
  }
  count(*entry);
  if (worked) set_deadline(number, *entry, now_ns + window_ms * ns_per_ms);
  return {};
}

void ParkedInputs::remove_ask(std::uint64_t number, std::uint64_t ask) {
  Entry *entry = entries_.get(number);
  if (entry != nullptr && entry->call.remove_ask(ask)) count(*entry);
}

std::expected<ParkedInput::Retry, RetryFault> ParkedInputs::retry(std::string_view principal,
                                                                  const ParkedTicket &ticket,
                                                                  std::uint64_t request,
                                                                  std::string_view responses,
                                                                  std::uint64_t now_ns) {
  Entry *entry = entries_.get(ticket.number);
  if (entry == nullptr || entry->owner.principal != principal) {
    const bool evicted =
        std::find(evicted_.begin(), evicted_.end(), ticket.number) != evicted_.end();
    return std::unexpected(evicted ? RetryFault::evicted : RetryFault::unknown_call);
  }
  const ParkedInput::Phase before = entry->call.phase();
  auto result = entry->call.retry(request, ticket.round, responses);
  if (!result) return result;
  count(*entry);
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
  if (entry == nullptr || entry->ended()) return {};
  const bool asked = entry->call.phase() == ParkedInput::Phase::asked;
  std::vector<std::uint64_t> requests = entry->call.take_waiting();
  entry->call.end({});
  count(*entry);
  if (make_room({entry->owner, {0, text.size(), 0}, number, true}).empty()) {
    entry->call.end(std::string(text), http_status);
  } else {
    entry->call.end(too_large(text.size()));
  }
  count(*entry);
  entry->call_number = 0;
  const std::uint64_t asked_until = asked ? entry->deadline_ns : 0;
  set_deadline(number, *entry, std::max(asked_until, now_ns + rejoin_ms * ns_per_ms));
  return requests;
}

void ParkedInputs::forget_ends() {
  std::vector<std::uint64_t> ended;
  entries_.for_each([&ended](std::uint64_t number, const Entry &entry) {
    if (entry.ended()) ended.push_back(number);
  });
  for (const std::uint64_t number : ended) erase(number);
}

std::vector<ParkedInputs::Due> ParkedInputs::due(std::uint64_t now_ns) {
  std::vector<Due> out = std::exchange(evictions_, {});
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
      if (entry.call.is_awaited()) {
        set_deadline(number, entry, 0);
        return {};  // the call has ended, and end() follows
      }
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
  if (!evictions_.empty()) return 0;
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

// ---- limits ----------------------------------------------------------------------------------

// Removes stored ends and evicts calls until there is room. Returns an empty string, or an error
// message that names the limit if no room can be made.
std::string ParkedInputs::make_room(const Need &need) {
  while (const auto full = exceeded(need)) {
    const std::uint64_t number = find_removable(need, *full);
    if (number == 0) return at_limit(full->what, full->limit);
    evict(number);
  }
  return {};
}

std::optional<ParkedInputs::Full> ParkedInputs::exceeded(const Need &need) const {
  const Sums principal = sums(need.owner.principal);
  if (principal.calls + need.more.calls > limits_.calls_per_principal) {
    return Full{"parked calls of this client", limits_.calls_per_principal, Group::principal,
                &Sums::calls};
  }
  if (principal.bytes + need.more.bytes > limits_.bytes_per_principal) {
    return Full{"bytes of parked calls of this client", limits_.bytes_per_principal,
                Group::principal, &Sums::bytes};
  }
  if (need.more.asks != 0 &&
      sums(name_of_peer(need.owner)).asks + need.more.asks > asks_per_peer_) {
    return Full{"open requests for input of this client", asks_per_peer_, Group::peer, &Sums::asks};
  }
  if (all_.calls + need.more.calls > limits_.calls) {
    return Full{"parked calls", limits_.calls, Group::all, &Sums::calls};
  }
  if (all_.bytes + need.more.bytes > limits_.bytes) {
    return Full{"bytes of parked calls", limits_.bytes, Group::all, &Sums::bytes};
  }
  return std::nullopt;
}

// Returns the number of the call or stored end to remove, or 0 if there is none. Descends from the
// group that is at its limit to a connection, always into the largest part. The owner of `need` is
// counted with what it needs.
std::uint64_t ParkedInputs::find_removable(const Need &need, const Full &full) const {
  static constexpr std::string ParkedOwner::*names[] = {
      nullptr, &ParkedOwner::principal, &ParkedOwner::peer, &ParkedOwner::connection};
  std::vector<Numbered> left;
  entries_.for_each([&](std::uint64_t number, const Entry &entry) {
    if (number == need.number || entry.counted.*full.unit == 0) return;
    if (need.ends_only && !entry.ended()) return;
    for (auto group = std::size_t{1}; group <= static_cast<std::size_t>(full.group); ++group) {
      if (entry.owner.*names[group] != need.owner.*names[group]) return;
    }
    left.emplace_back(number, &entry);
  });
  std::sort(left.begin(), left.end(), [](const Numbered &a, const Numbered &b) {
    return a.second->sequence < b.second->sequence;
  });
  bool own = true;  // the entries in `left` are in the owner's group
  for (std::size_t level = static_cast<std::size_t>(full.group) + 1; level < std::size(names);
       ++level) {
    const auto name = names[level];
    std::unordered_map<std::string_view, std::size_t> parts;
    for (const auto &[number, entry] : left) parts[entry->owner.*name] += entry->counted.*full.unit;
    std::size_t of_owner = 0;
    bool is_new = true;  // the owner has nothing in this group yet
    if (own) {
      std::size_t &part = parts[need.owner.*name];
      part += counted(need.number).*full.unit;
      is_new = part == 0;
      of_owner = part += need.more.*full.unit;
    }
    std::size_t largest = 0;
    for (const auto &[text, sum] : parts) largest = std::max(largest, sum);
    // Between equal parts, the owner's part is chosen unless it is new. Otherwise, parts that
    // differ by one call would evict each other's calls in turn.
    const bool chooses_own = own && !is_new && of_owner == largest;
    const auto oldest = std::find_if(left.begin(), left.end(), [&](const Numbered &one) {
      return parts[one.second->owner.*name] == largest;
    });
    if (!chooses_own && oldest == left.end()) return 0;  // the owner itself is the largest part
    const std::string chosen = chooses_own ? need.owner.*name : oldest->second->owner.*name;
    own = own && need.owner.*name == chosen;
    std::erase_if(left, [&](const Numbered &one) { return one.second->owner.*name != chosen; });
  }
  const auto loss = [](const Numbered &one) {
    if (one.second->ended()) return 0;
    return one.second->call.phase() == ParkedInput::Phase::asked ? 1 : 2;
  };
  const auto least =
      std::min_element(left.begin(), left.end(),
                       [&](const Numbered &a, const Numbered &b) { return loss(a) < loss(b); });
  return least == left.end() || (own && loss(*least) != 0) ? 0 : least->first;
}

void ParkedInputs::evict(std::uint64_t number) {
  Entry &entry = *entries_.get(number);
  if (!entry.ended()) {
    evictions_.push_back(
        {Due::Kind::evicted, number, entry.call_number, entry.call.take_waiting()});
    evicted_.push_back(number);
    if (evicted_.size() > limits_.calls) evicted_.pop_front();
  }
  erase(number);
}

// ---- sums ------------------------------------------------------------------------------------

ParkedInputs::Sums ParkedInputs::counted(std::uint64_t number) const {
  const Entry *entry = entries_.get(number);
  return entry == nullptr ? Sums{} : entry->counted;
}

ParkedInputs::Sums ParkedInputs::sums(std::string_view group) const {
  const auto found = sums_.find(std::string(group));
  return found == sums_.end() ? Sums{} : found->second;
}

void ParkedInputs::add(const ParkedOwner &owner, const Sums &more, bool negative) {
  const auto add_to = [&](Sums *sums) {
    sums->calls += negative ? -more.calls : more.calls;
    sums->bytes += negative ? -more.bytes : more.bytes;
    sums->asks += negative ? -more.asks : more.asks;
  };
  add_to(&all_);
  for (const std::string &group : {owner.principal, name_of_peer(owner)}) {
    const auto at = sums_.try_emplace(group).first;
    add_to(&at->second);
    if (at->second.calls == 0) sums_.erase(at);
  }
}

void ParkedInputs::count(Entry &entry) {
  const Sums before = std::exchange(
      entry.counted,
      {1, bytes_of_entry + entry.owner.principal.size() + entry.call.bytes(), entry.call.asks()});
  add(entry.owner, entry.counted, false);
  add(entry.owner, before, true);
}

void ParkedInputs::set_deadline(std::uint64_t number, Entry &entry, std::uint64_t deadline_ns) {
  if (entry.deadline_ns != 0) deadlines_.erase({entry.deadline_ns, number});
  entry.deadline_ns = deadline_ns;
  if (deadline_ns != 0) deadlines_.insert({deadline_ns, number});
}

void ParkedInputs::erase(std::uint64_t number) {
  Entry &entry = *entries_.get(number);
  set_deadline(number, entry, 0);
  add(entry.owner, entry.counted, true);
  entries_.erase(number);
}

}  // namespace bulkhead
