#include "route/recorder.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "bulkhead/abi/ext/policy.h"
#include "bulkhead/cpp/basics.hpp"
#include "route/session.hpp"

namespace bulkhead {

namespace {

// A slot of the exchange table keeps its strings' capacity; not that of a large message.
constexpr std::size_t max_kept_capacity = 4096;

std::uint64_t unix_ns() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::system_clock::now().time_since_epoch())
                                        .count());
}

bool is_hex(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// At most `bytes` of it, cut on a character boundary.
std::string_view cut(std::string_view text, std::size_t bytes) noexcept {
  std::string_view part = text.substr(0, bytes);
  while (part.size() < text.size() && !part.empty() &&
         (static_cast<unsigned char>(text[part.size()]) & 0xC0) == 0x80) {
    part.remove_suffix(1);
  }
  return part;
}

// The trace of _meta.traceparent, else the session's.
std::string trace_id(std::string_view message, const mcp::Scan &scan, const Session *session) {
  if (!scan.meta.empty()) {
    const std::string_view token = mcp::member(scan.meta.in(message), "traceparent");
    std::string scratch;
    if (token.starts_with('"')) {
      const std::string_view own = trace_of(mcp::unquote(token, &scratch));
      if (!own.empty()) return std::string(own);
    }
  }
  return session == nullptr ? std::string() : session->trace_id;
}

// params with other arguments. They may lie, in part, behind what was kept of it.
std::string redacted(std::string_view params, std::uint64_t begin, std::uint64_t end) {
  constexpr std::string_view instead = R"({"redacted_by_policy":true})";
  if (begin == end || begin >= params.size()) return std::string(params);
  std::string out(params.substr(0, begin));
  out += instead;
  out += end <= params.size() ? params.substr(end) : "}";
  return out;
}

}  // namespace

std::string_view trace_of(std::string_view parent) noexcept {
  // version "-" trace-id "-" parent-id "-" flags, and what later versions append.
  if (parent.size() < 55 || parent[2] != '-' || parent[35] != '-' || parent[52] != '-') return {};
  if (!is_hex(parent.substr(0, 2)) || parent.starts_with("ff")) return {};
  if (parent.size() > 55 && parent[55] != '-') return {};
  const std::string_view trace = parent.substr(3, 32);
  const bool any = trace.find_first_not_of('0') != std::string_view::npos;
  return any && is_hex(trace) ? trace : std::string_view{};
}

// Nobody makes a record in every microsecond, so numbers go on growing in the next process.
Recorder::Recorder(Reactor &reactor) : reactor_(reactor), next_number_(unix_ns() / 1000) {}

Recorder::~Recorder() {
  reactor_.timer_cancel(timer_);
}

std::uint32_t Recorder::Sink::needs() const {
  const bool asks = BH_HAS(bh_telemetry, table, needs) && table->needs != nullptr;
  return asks ? table->needs(self) : 0;
}

bool Recorder::any_needs(std::uint32_t bit) const {
  return std::any_of(sinks_.begin(), sinks_.end(),
                     [bit](const Sink &sink) { return (sink.needs() & bit) != 0; });
}

bool Recorder::must_refuse(std::size_t under_way) const {
  return waiting_.size() + under_way >= max_waiting && any_needs(BH_TELEMETRY_BLOCKS);
}

// ---- texts -----------------------------------------------------------------------------------

// A copy of the text as far as it is to be kept; counted until it goes.
std::string Recorder::kept(std::string_view json, std::uint32_t cut_flag, std::uint32_t *flags) {
  if (json.empty() || !any_needs(BH_TELEMETRY_TEXTS)) return {};
  std::string_view part = cut(json, BH_RECORD_TEXT_BYTES);
  if (text_bytes_ + part.size() > max_text_bytes) part = {};
  if (part.size() < json.size()) *flags |= cut_flag;
  text_bytes_ += part.size();
  return std::string(part);
}

void Recorder::begin(Exchange &e, std::string_view message, const mcp::Scan &scan) {
  Account &account = e.account;
  const std::string_view params = scan.params.in(message);
  account.params_bytes = params.size();
  account.request = kept(params, BH_RECORD_REQUEST_CUT, &account.flags);
  if (!scan.arguments.empty()) {
    account.arguments_begin = scan.arguments.begin - scan.params.begin;
    account.arguments_end = scan.arguments.end - scan.params.begin;
  }
  account.trace_id = trace_id(message, scan, e.session);
}

void Recorder::note_response(Exchange &e, std::string_view json) {
  Account &account = e.account;
  text_bytes_ -= account.response.size();
  account.flags &= ~std::uint32_t{BH_RECORD_RESPONSE_CUT};
  account.result_bytes = json.size();
  account.response = kept(json, BH_RECORD_RESPONSE_CUT, &account.flags);
}

void Recorder::forget(Exchange &e) noexcept {
  text_bytes_ -= e.account.request.size() + e.account.response.size();
  e.account.clear(max_kept_capacity);
}

// ---- records ---------------------------------------------------------------------------------

// Null: there is no place for it. Calls have theirs from the beginning, where a plugin wants that.
Recorder::Entry *Recorder::new_entry(const End &end, std::uint64_t start_ns, bool is_call) {
  const std::uint64_t number = next_number_++;
  if (waiting_.size() >= max_waiting && !(is_call && any_needs(BH_TELEMETRY_BLOCKS))) {
    ++dropped_;
    return nullptr;
  }
  Entry &entry = waiting_.emplace_back();
  entry.facts.size = sizeof entry.facts;
  entry.facts.number = number;
  entry.facts.outcome = end.outcome;
  entry.facts.duration_ns = end.now_ns - start_ns;
  entry.facts.start_unix_ns = unix_ns() - entry.facts.duration_ns;
  entry.facts.bytes_out = end.bytes_out;
  entry.rule = cut(end.rule, max_text);
  entry.error = cut(end.error, max_text);
  if (timer_ == 0) start_timer();
  return &entry;
}

void Recorder::describe(const Session &session, Entry *entry) {
  entry->transport = session.transport;
  entry->peer = session.address;
  entry->principal = session.principal;
}

void Recorder::record(Exchange &e, const End &end, bool has_place) {
  if (!end.response.empty()) note_response(e, end.response);
  Entry *entry = new_entry(end, e.start_ns, has_place);
  if (entry == nullptr) return forget(e);
  Account &account = e.account;
  entry->facts.exchange = e.id;
  entry->facts.session = e.reply.session;
  entry->facts.bytes_in = e.bytes_in;
  entry->facts.params_bytes = account.params_bytes;
  entry->facts.result_bytes = account.result_bytes;
  entry->facts.action = account.action;
  entry->facts.flags = account.flags;
  if (end.outcome == BH_OUTCOME_REFUSED && account.action == 0) {
    entry->facts.action = BH_VERDICT_BLOCK;  // the gate itself, for want of an answer
  }
  if (e.session != nullptr) describe(*e.session, entry);
  entry->process_name = e.process_name;
  entry->method = mcp::to_string(e.method);
  entry->server = e.server;
  entry->name = cut(e.name, max_text);
  entry->request_id = cut(e.client_id, max_text);
  if (entry->rule.empty()) entry->rule = cut(account.rule, max_text);
  entry->reason = cut(account.reason, max_text);
  entry->trace_id = std::move(account.trace_id);
  entry->request = std::move(account.request);
  entry->response = std::move(account.response);
  // Refused before it went anywhere: what it asked for is not kept either.
  if (end.outcome == BH_OUTCOME_REFUSED && !account.dispatched) {
    text_bytes_ -= entry->request.size();
    entry->request = redacted(entry->request, account.arguments_begin, account.arguments_end);
    text_bytes_ += entry->request.size();
  }
  account.request.clear();
  account.response.clear();
  account.clear(max_kept_capacity);
}

void Recorder::record(const Message &message, const End &end) {
  Entry *entry = new_entry(end, message.start_ns, false);
  if (entry == nullptr) return;
  const mcp::Scan &scan = *message.scan;
  const std::string_view params = scan.params.in(message.text);
  std::string scratch;
  entry->facts.session = message.session_handle;
  entry->facts.bytes_in = message.text.size();
  entry->facts.params_bytes = params.size();
  entry->facts.result_bytes = end.response.size();
  if (scan.kind == mcp::Kind::notification) entry->facts.flags |= BH_RECORD_NOTIFICATION;
  if (message.session != nullptr) {
    describe(*message.session, entry);
    entry->process_name = message.session->process_name;
  }
  entry->method = scan.method == mcp::Method::other
                      ? cut(mcp::unquote(scan.method_text.in(message.text), &scratch), 128)
                      : mcp::to_string(scan.method);
  const mcp::Range named = scan.name.empty() ? scan.uri : scan.name;
  if (!named.empty()) entry->name = cut(mcp::unquote(named.in(message.text), &scratch), max_text);
  entry->request_id = cut(scan.id.in(message.text), max_text);
  entry->trace_id = trace_id(message.text, scan, message.session);
  entry->request = kept(params, BH_RECORD_REQUEST_CUT, &entry->facts.flags);
  entry->response = kept(end.response, BH_RECORD_RESPONSE_CUT, &entry->facts.flags);
}

// ---- handing over ----------------------------------------------------------------------------

void Recorder::start_timer() {
  timer_ = reactor_.timer_start(
      this, flush_ms,
      [](void *arg) {
        auto &self = *static_cast<Recorder *>(arg);
        self.timer_ = 0;
        self.flush();
        if (!self.waiting_.empty()) self.start_timer();
      },
      this);
}

void Recorder::flush() {
  for (Sink &sink : sinks_) offer(sink);
  drop_taken();
}

void Recorder::offer(Sink &sink) {
  const std::uint64_t end = first_ + waiting_.size();
  std::vector<bh_record> facts;
  std::vector<const bh_record *> pointers;
  for (std::uint64_t at = std::max(sink.taken, first_); at < end;) {
    const auto n = static_cast<std::uint32_t>(std::min<std::uint64_t>(batch_size, end - at));
    facts.clear();
    pointers.clear();
    for (std::uint32_t i = 0; i < n; ++i) {
      const Entry &entry = waiting_[at - first_ + i];
      bh_record &r = facts.emplace_back(entry.facts);
      r.transport = bh::str(entry.transport);
      r.peer = bh::str(entry.peer);
      r.principal = bh::str(entry.principal);
      r.process_name = bh::str(entry.process_name);
      r.method = bh::str(entry.method);
      r.server = bh::str(entry.server);
      r.name = bh::str(entry.name);
      r.rule = bh::str(entry.rule);
      r.error = bh::str(entry.error);
      r.request_id = bh::str(entry.request_id);
      r.request = bh::str(entry.request);
      r.response = bh::str(entry.response);
      r.reason = bh::str(entry.reason);
      r.trace_id = bh::str(entry.trace_id);
    }
    for (const bh_record &r : facts) pointers.push_back(&r);
    const std::uint32_t taken = std::min(n, sink.table->batch(sink.self, pointers.data(), n));
    at += taken;
    sink.taken = at;
    if (taken < n) return;
  }
}

void Recorder::drop_taken() {
  std::uint64_t all = first_ + waiting_.size();
  for (const Sink &sink : sinks_) all = std::min(all, std::max(sink.taken, first_));
  while (first_ < all) {
    text_bytes_ -= waiting_.front().text_bytes();
    waiting_.pop_front();
    ++first_;
  }
}

}  // namespace bulkhead
