#include "route/session_journal.hpp"

#include <utility>

namespace bulkhead {
namespace {

// If the process has run for this long, the contents of the ledger are considered harmless.
constexpr std::uint64_t steady_ms = 1'000;

}  // namespace

void SessionJournal::use(Ledger *ledger) {
  ledger_ = ledger;
  if (ledger == nullptr) return;
  for (const std::uint64_t key : ledger->ended()) reopening_.ended_before(key, reactor_.now_ns());
  reactor_.timer_start(this, steady_ms, bh::callback<&Ledger::prove>(ledger));
}

void SessionJournal::remember(bh_session handle, std::string_view id, SealTime sealed) {
  Session *s = sessions_.find(handle);
  if (s == nullptr || s->slot != Ledger::none) return;
  s->resume_id = id;
  s->sealed = sealed;
  if (ledger_ == nullptr) return;
  s->slot = ledger_->claim(id);
  save(*s);
}

void SessionJournal::save(const Session &s) {
  if (s.slot == Ledger::none || !s.initialized) return;
  LedgerRecord record{s.resume_id, s.revision, s.caps, s.log_level, s.listed, s.to_subscribe};
  for (const auto &[uri, sub] : s.subscriptions) record.subscriptions.push_back(uri);
  ledger_->write(s.slot, std::move(record));
}

void SessionJournal::forget(Session &s) {
  if (is_carried(s.handle)) {
    carried_ = 0;
    ledger_->end_carried();
  } else if (s.slot != Ledger::none) {
    ledger_->release(s.slot);
  }
  s.slot = Ledger::none;
}

void SessionJournal::evict(Session &s) {
  reopening_.evicted(s.resume_id, s.sealed, reactor_.now_ns(), idle_ns());
  const bool remembered = s.log_level >= 0 || !s.subscriptions.empty() || !s.to_subscribe.empty();
  if (ledger_ != nullptr && s.slot != Ledger::none && s.slot != Ledger::carried && remembered) {
    ledger_->leave(std::exchange(s.slot, Ledger::none), s.resume_id);
  }
}

void SessionJournal::end(const Session &s) {
  reopening_.ended(s.resume_id, reactor_.now_ns());
  if (ledger_ != nullptr && !s.resume_id.empty()) {
    ledger_->add_ended(RecentIds::key_of(s.resume_id));
  }
}

void SessionJournal::reopened(Session &s, std::string_view id, SealTime sealed) {
  reopening_.reopened(id);
  if (ledger_ != nullptr && s.slot == Ledger::none) s.slot = ledger_->take(id);
  if (s.slot == Ledger::none) return remember(s.handle, id, sealed);
  s.resume_id = id;
  s.sealed = sealed;
}

void SessionJournal::too_old() {
  if (ledger_ != nullptr && ledger_->any_left()) ledger_->forget_left();
}

// ---- the carried session ---------------------------------------------------------------------

void SessionJournal::carry(Session &s) {
  carried_ = s.handle;
  s.slot = Ledger::carried;
}

void SessionJournal::add_request(std::uint64_t stream, const Message &request) {
  ledger_->add_request(stream, request.id(), request.scan->method == mcp::Method::initialize);
}

void SessionJournal::note(bh_session session, std::uint64_t note) {
  if (is_carried(session)) ledger_->set_note(note);
}

void SessionJournal::settle(bh_session session, std::uint64_t stream) {
  if (is_carried(session)) ledger_->settle(stream);
}

bool SessionJournal::keep(bh_session session, std::string_view bytes, bool more) {
  return is_carried(session) && ledger_->keep(bytes, more);
}

void SessionJournal::taken(bh_session session, std::uint64_t n) {
  if (is_carried(session)) ledger_->taken(n);
}

}  // namespace bulkhead
