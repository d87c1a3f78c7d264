// Sessions that go on in the next process: what is written down of them (see ledger.hpp), and what
// a process does with what the one before it has left.
#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "bulkhead/cpp/basics.hpp"
#include "route/router.hpp"

namespace bulkhead {
namespace {

constexpr std::uint64_t steady_ms = 1'000;  // a process that lives so long is harmed by nothing
constexpr int log_levels = 8;
constexpr ClientCaps all_caps = 2 * cap::elicitation_url - 1;

constexpr std::string_view lost_call =
    "the gateway's endpoint was started again before it could answer: the call may have run, and "
    "was not repeated";
constexpr std::string_view lost_initialize =
    "the gateway's endpoint was started again before it could answer: send initialize again";

// What was read back is one JSON token, and nothing more.
bool is_id(const std::string &id) {
  const std::string message = R"({"jsonrpc":"2.0","method":"ping","id":)" + id + "}";
  mcp::Scan scan;
  mcp::ScanError error;
  return mcp::scan(message, &scan, &error) && scan.kind == mcp::Kind::request &&
         scan.id.in(message) == id;
}

std::string subscribe_message(const std::string &uri) {
  return R"({"jsonrpc":"2.0","id":0,"method":"resources/subscribe","params":{"uri":)" + uri + "}}";
}

}  // namespace

void Router::use_ledger(Ledger *ledger) {
  ledger_ = ledger;
  answers_.use_ledger(ledger);
  if (ledger == nullptr) return;
  recorder_.use_ring(&ledger->records());
  ledger_timer_ = reactor_.timer_start(
      this, steady_ms, [](void *arg) { static_cast<Ledger *>(arg)->prove(); }, ledger);
}

// ---- writing -----------------------------------------------------------------------------------

void Router::session_remember(bh_session handle, std::string_view id) {
  Session *s = session(handle);
  if (s == nullptr || s->slot != Ledger::none) return;
  s->resume_id = id;
  if (ledger_ == nullptr) return;
  s->slot = ledger_->claim(id);
  save(*s);
}

bool Router::session_was_evicted(std::string_view id) const {
  const std::uint64_t now = reactor_.now_ns();
  const std::uint64_t idle_ns = limits().session_idle_ms * 1'000'000u;
  return evicted_.holds(id, now, idle_ns) || evicted_early_.holds(id, now, idle_ns);
}

// Ends the session so that its client can take it up again. What the ledger knows of it stays there
// if the sealed id alone cannot bring it back.
void Router::evict(Session &s) {
  (s.ready ? evicted_ : evicted_early_).add(s.resume_id, reactor_.now_ns());
  const bool remembered = s.log_level >= 0 || !s.subscriptions.empty() || !s.to_subscribe.empty();
  if (ledger_ != nullptr && s.slot != Ledger::none && s.slot != Ledger::carried && remembered) {
    ledger_->leave(std::exchange(s.slot, Ledger::none), s.resume_id);
  }
  close_session(s);
}

void Router::sessions_too_old() {
  if (ledger_ != nullptr && ledger_->any_left()) ledger_->forget_left();
}

void Router::save(const Session &s) {
  if (s.slot == Ledger::none || !s.initialized) return;
  LedgerRecord record{s.resume_id, s.revision, s.caps, s.log_level, s.listed, s.to_subscribe};
  for (const auto &[uri, sub] : s.subscriptions) record.subscriptions.push_back(uri);
  ledger_->write(s.slot, std::move(record));
}

void Router::forget(Session &s) {
  if (s.handle == carried_ && carried_ != 0) {
    carried_ = 0;
    owed_.clear();
    ledger_->end_carried();
  } else if (s.slot != Ledger::none) {
    ledger_->release(s.slot);
  }
  s.slot = Ledger::none;
}

void Router::session_note(bh_session handle, std::uint64_t note) {
  if (handle == carried_ && carried_ != 0) ledger_->set_note(note);
}

void Router::session_settle(bh_session handle, std::uint64_t stream) {
  if (handle == carried_ && carried_ != 0) ledger_->settle(stream);
}

bool Router::session_keep(bh_session handle, std::string_view bytes, bool more) {
  return handle == carried_ && carried_ != 0 && ledger_->keep(bytes, more);
}

void Router::session_taken(bh_session handle, std::uint64_t n) {
  if (handle == carried_ && carried_ != 0) ledger_->taken(n);
}

// ---- going on ----------------------------------------------------------------------------------

void Router::session_restore(bh_session handle, std::uint8_t revision, ClientCaps caps,
                             std::string_view id) {
  Session *s = session(handle);
  if (s == nullptr || s->initialized || revision >= std::size(revisions)) return;
  s->revision = revision;
  s->caps = caps;
  s->initialized = s->ready = true;
  s->listed = static_cast<std::uint8_t>((1u << item_kinds) - 1);
  s->to_tell_lists = true;
  evicted_.forget(id);
  evicted_early_.forget(id);
  if (ledger_ != nullptr && s->slot == Ledger::none) s->slot = ledger_->take(id);
  if (s->slot != Ledger::none) {
    s->resume_id = id;
    if (auto record = ledger_->read(s->slot)) {
      s->listed &= record->listed;
      if (record->log_level >= 0 && record->log_level < log_levels)
        s->log_level = record->log_level;
      s->to_subscribe = std::move(record->subscriptions);
      if (s->to_subscribe.size() > limits().subscriptions_per_session) {
        s->to_subscribe.resize(limits().subscriptions_per_session);
      }
    }
  } else {
    session_remember(handle, id);
  }
  views_.join(*s);
  go_on_later();
}

std::optional<Router::Carried> Router::session_carry(bh_session handle) {
  Session *s = session(handle);
  if (ledger_ == nullptr || s == nullptr || carried_ != 0) return std::nullopt;
  Carried carried{false, ledger_->last_stream(), ledger_->note(), ledger_->unread()};
  carried_ = handle;
  owed_ = ledger_->requests();
  s->slot = Ledger::carried;
  const auto record = ledger_->read(Ledger::carried);
  // Its client does not know whether it has been let in.
  const bool shaking = std::any_of(owed_.begin(), owed_.end(),
                                   [](const LedgerRequest &request) { return request.initialize; });
  if (record && record->revision < std::size(revisions) && !shaking) {
    session_restore(handle, record->revision, record->caps & all_caps, {});
    carried.restored = true;
  } else {
    ledger_->release(Ledger::carried);
  }
  if (!owed_.empty()) go_on_later();
  return carried;
}

// Not at once: the transport does not know of its session yet.
void Router::go_on_later() {
  if (std::exchange(go_on_pending_, true)) return;
  reactor_.defer(this, [](void *arg) { static_cast<Router *>(arg)->go_on(); }, this);
}

void Router::go_on() {
  go_on_pending_ = false;
  answer_owed();
  views_.for_each([this](View &view) { lists_ready(view); });
  check_idle();
}

// The place in the ledger is free again when the transport says that the answer is out.
void Router::answer_owed() {
  for (const LedgerRequest &request : std::exchange(owed_, {})) {
    if (carried_ == 0) return;
    if (!is_id(request.id)) {
      ledger_->settle(request.stream);
      continue;
    }
    std::string text = R"({"jsonrpc":"2.0","id":)" + request.id + R"(,"error":{"code":)" +
                       std::to_string(code::internal_error) + R"(,"message":)";
    mcp::append_quoted(&text, request.initialize ? lost_initialize : lost_call);
    text += "}}";
    const bh_str part = bh::str(text);
    answers_.send({carried_, request.stream, 0}, BH_OUT_ANSWER, &part, 1);
  }
}

// What restored clients of this view had, as soon as their servers have answered or failed.
void Router::lists_ready(View &view) {
  if (!Views::is_ready(view)) return;
  bool told = false;
  for (Session *s : std::vector<Session *>(view.clients)) {
    if (std::exchange(s->to_tell_lists, false)) {
      if (!std::exchange(told, true)) views_.mark_shown(view);
      for (const ItemKind kind : all_item_kinds) {
        if (kind == ItemKind::resource_template || !profile_.expose.list_changed) continue;
        views_.tell_list_changed(*s, kind);
      }
    }
    if (!s->to_subscribe.empty()) subscribe_again(s->handle);
  }
}

// As if the client did, so that policy is asked, too. What nobody offers yet is tried again when
// lists change.
void Router::subscribe_again(bh_session handle) {
  std::string scratch;
  for (std::size_t i = 0;;) {
    Session *s = session(handle);
    if (s == nullptr || i >= s->to_subscribe.size()) return;
    const std::string uri = s->to_subscribe[i];
    const std::string message = subscribe_message(uri);
    mcp::Scan scan;
    mcp::ScanError error;
    const bool sound = mcp::scan(message, &scan, &error) && scan.uri.in(message) == uri;
    if (sound && !views_.catalogue(*s->view).resolve_uri(mcp::unquote(uri, &scratch), names_)) {
      ++i;
      continue;
    }
    s->to_subscribe.erase(s->to_subscribe.begin() + static_cast<std::ptrdiff_t>(i));
    if (!sound) continue;
    const std::uint64_t silent = answers_.batches().open_silent({handle, 0, 0});
    Incoming request{{handle, 0, silent}, {message, &scan}, reactor_.now_ns()};
    request.recorded = true;  // of what the gateway asks itself only calls are on record
    handle_request(*s, request);
  }
}

}  // namespace bulkhead
