#include "route/recorder.hpp"

#include <algorithm>
#include <utility>

#include "bulkhead/abi/ext/policy.h"
#include "bulkhead/cpp/basics.hpp"
#include "bulkhead/cpp/clock.hpp"
#include "bulkhead/cpp/json_writer.hpp"
#include "bulkhead/cpp/text.hpp"

namespace bulkhead {

namespace {

// The strings of an account keep their capacity for the next call. If a large message has increased
// a string's capacity beyond this size, the memory is freed.
constexpr std::size_t max_kept_capacity = 4096;

// The longest time, in microseconds, by which the clock may be set back while records wait.
constexpr std::uint64_t max_clock_change_us = 366ull * 24 * 3600 * 1'000'000;

// A plugin with one of these needs does not allow calls that cannot be recorded.
constexpr std::uint32_t never_without = BH_TELEMETRY_BLOCKS | BH_TELEMETRY_COMMITS;

// Returns the trace id from _meta.traceparent or, if that is absent or invalid, the session's trace
// id.
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

// Returns params with the arguments replaced by a placeholder. params may have been truncated
// before or inside the arguments.
std::string redacted(std::string_view params, std::uint64_t begin, std::uint64_t end) {
  constexpr std::string_view instead = R"({"redacted_by_policy":true})";
  if (begin == end || begin >= params.size()) return std::string(params);
  std::string out(params.substr(0, begin));
  out += instead;
  out += end <= params.size() ? params.substr(end) : "}";
  return out;
}

// Returns the text of a JSON string. Of a long string, only the beginning is unescaped, which has
// more than max_text bytes: messages with a long name are rejected on the event loop.
std::string_view recorded_text(std::string_view token, std::string *start, std::string *scratch) {
  constexpr std::size_t long_token = 8192;
  static_assert(long_token / 6 > Recorder::max_text + 8);  // an escape sequence has up to 6 bytes
  if (token.size() <= long_token) return mcp::unquote(token, scratch);
  std::size_t end = 1;
  while (end < long_token - 8) {
    end += token[end] != '\\' ? 1 : token[end + 1] == 'u' ? 6 : 2;
  }
  start->assign(token.substr(0, end)) += '"';
  return mcp::unquote(*start, scratch);
}

}  // namespace

std::string_view trace_of(std::string_view parent) noexcept {
  // The format is version "-" trace-id "-" parent-id "-" flags. Later versions may append fields.
  if (parent.size() < 55 || parent[2] != '-' || parent[35] != '-' || parent[52] != '-') return {};
  if (!bh::is_lower_hex(parent.substr(0, 2)) || parent.starts_with("ff")) return {};
  if (parent.size() > 55 && parent[55] != '-') return {};
  const std::string_view trace = parent.substr(3, 32);
  const bool any = trace.find_first_not_of('0') != std::string_view::npos;
  return any && bh::is_lower_hex(trace) ? trace : std::string_view{};
}

// Record numbers start at the current time in microseconds. A process creates fewer than one record
// per microsecond, so the next process starts with a higher number unless the clock is set back.
Recorder::Recorder(Reactor &reactor) : reactor_(reactor), next_number_(bh::unix_ns() / 1000) {}

Recorder::~Recorder() {
  reactor_.timer_cancel(timer_);
  reactor_.forget(this);
}

std::uint32_t Recorder::Sink::needs() const {
  const bool asks = BH_HAS(bh_telemetry, table, needs) && table->needs != nullptr;
  std::uint32_t bits = asks ? table->needs(self) : 0;
  // Intent records are events, so a plugin that does not need events cannot require commits.
  if ((bits & BH_TELEMETRY_EVENTS) == 0) bits &= ~std::uint32_t{BH_TELEMETRY_COMMITS};
  return bits;
}

bool Recorder::any_needs(std::uint32_t bit) const {
  return std::any_of(sinks_.begin(), sinks_.end(),
                     [bit](const Sink &sink) { return (sink.needs() & bit) != 0; });
}

bool Recorder::records_rejected() const {
  constexpr std::uint32_t both = BH_TELEMETRY_TEXTS | BH_TELEMETRY_REJECTED;
  return std::none_of(sinks_.begin(), sinks_.end(),
                      [](const Sink &sink) { return (sink.needs() & both) == BH_TELEMETRY_TEXTS; });
}

bool Recorder::must_refuse(std::size_t under_way) const {
  const bool full = waiting_.size() + under_way >= max_waiting || (keeps() && ring_->nearly_full());
  return full && any_needs(never_without);
}

// ---- memory that survives the process --------------------------------------------------------

void Recorder::use_ring(RecordRing *ring) {
  ring_ = ring;
  if (ring == nullptr) return;
  // The earlier process wrote records in ascending order, and with numbers below the current
  // next_number_ unless the clock was set back since. Records with other numbers are invalid.
  const std::uint64_t below = next_number_ + max_clock_change_us;
  std::size_t wrong = 0;
  const bool whole = ring->for_each([&](const bh_record &record) {
    const std::uint64_t least = waiting_.empty() ? 1 : waiting_.back().facts.number + 1;
    const bool sound = record.number >= least && record.number < below;
    sound ? load(record) : static_cast<void>(++wrong);
  });
  // Invalid records would never be acknowledged, so they would never leave the ring. The valid
  // records are stored again, because this process may also exit before they are acknowledged.
  if (wrong != 0 || !whole) {
    ring->clear();
    for (const Entry &entry : waiting_) ring->put(view_of(entry));
  }
  // Continue the numbering, so that lost records appear as gaps.
  const std::uint64_t last = waiting_.empty() ? 0 : waiting_.back().facts.number + 1;
  const std::uint64_t stored = ring->next_number();
  const std::uint64_t next = std::max(stored < below ? stored : next_number_, last);
  if (next != 0) next_number_ = next;
  barrier_ = next_number_;
  earlier_below_ = next_number_;
  if (!waiting_.empty()) start_timer();
}

void Recorder::load(const bh_record &record) {
  Entry &entry = waiting_.emplace_back();
  entry.facts = record;
  for (bh_str bh_record::*text :
       {&bh_record::transport, &bh_record::peer, &bh_record::principal, &bh_record::process_name,
        &bh_record::method, &bh_record::server, &bh_record::name, &bh_record::rule,
        &bh_record::error, &bh_record::request_id, &bh_record::request, &bh_record::response,
        &bh_record::reason, &bh_record::trace_id, &bh_record::detail, &bh_record::claimed_name}) {
    entry.facts.*text = {};
  }
  entry.transport = bh::view(record.transport);
  entry.peer = bh::view(record.peer);
  entry.principal = bh::view(record.principal);
  entry.process_name = bh::view(record.process_name);
  entry.method = bh::view(record.method);
  entry.server = bh::view(record.server);
  entry.name = bh::view(record.name);
  entry.rule = bh::view(record.rule);
  entry.error = bh::view(record.error);
  entry.request_id = bh::view(record.request_id);
  entry.request = bh::view(record.request);
  entry.response = bh::view(record.response);
  entry.reason = bh::view(record.reason);
  entry.trace_id = bh::view(record.trace_id);
  entry.detail = bh::view(record.detail);
  if (record.claimed_name.n != 0)
    entry.claimed_name = std::make_shared<const std::string>(bh::view(record.claimed_name));
  text_bytes_ += entry.text_bytes();
}

// If the record does not fit into the ring, it exists only in this process. If the process crashes,
// the loss appears as a gap in the numbers.
void Recorder::keep(const Entry &entry) noexcept {
  if (keeps()) ring_->put(view_of(entry));
}

void Recorder::set_acknowledged(const void *self, std::uint64_t below) {
  std::uint64_t all = waiting_.empty() ? barrier_ : waiting_.front().facts.number;
  for (Sink &sink : sinks_) {
    if (sink.self == self) sink.acknowledged = std::max(sink.acknowledged, below);
    if (sink.elsewhere) all = std::min(all, sink.acknowledged);
  }
  if (ring_ != nullptr) ring_->release(all);
}

bool Recorder::is_committed(std::uint64_t below) const {
  return std::all_of(sinks_.begin(), sinks_.end(), [below](const Sink &sink) {
    return (sink.needs() & BH_TELEMETRY_COMMITS) == 0 || sink.committed >= below;
  });
}

void Recorder::set_committed(const void *self, std::uint64_t below) {
  for (Sink &sink : sinks_) {
    if (sink.self == self) sink.committed = std::max(sink.committed, std::min(below, barrier_));
  }
}

// ---- texts -----------------------------------------------------------------------------------

// Returns a copy of the text, truncated to the maximum size for records. The copy is empty if no
// plugin needs texts or max_text_bytes would be exceeded. The size of the copy is added to
// text_bytes_ and must be subtracted when the copy is freed.
std::string Recorder::kept(std::string_view json, std::uint32_t cut_flag, std::uint32_t *flags) {
  if (json.empty() || !any_needs(BH_TELEMETRY_TEXTS)) return {};
  std::string_view part = bh::cut_text(json, BH_RECORD_TEXT_BYTES);
  if (text_bytes_ + part.size() > max_text_bytes) part = {};
  if (part.size() < json.size()) *flags |= cut_flag;
  text_bytes_ += part.size();
  return std::string(part);
}

void Recorder::begin(Call &call, std::string_view message, const mcp::Scan &scan) {
  Account &account = call.account;
  const std::string_view params = scan.params.in(message);
  account.params_bytes = params.size();
  account.request = kept(params, BH_RECORD_REQUEST_CUT, &account.flags);
  if (!scan.arguments.empty()) {
    account.arguments_begin = scan.arguments.begin - scan.params.begin;
    account.arguments_end = scan.arguments.end - scan.params.begin;
  }
  account.more_than_arguments =
      scan.extra_params || scan.method == mcp::Method::completion_complete;
  account.trace_id = trace_id(message, scan, call.session);
}

// Updates the stored request, because arguments that a policy has removed must not be stored.
void Recorder::note_rewritten(Call &call, std::string_view arguments) {
  Account &account = call.account;
  const std::uint64_t begin = account.arguments_begin, end = account.arguments_end;
  if (begin == end || begin >= account.request.size()) return;
  text_bytes_ -= account.request.size();
  std::string out = account.request.substr(0, begin);
  out += arguments;
  if (end <= account.request.size()) out += std::string_view(account.request).substr(end);
  account.request = bh::cut_text(out, BH_RECORD_TEXT_BYTES);
  if (account.request.size() < out.size()) account.flags |= BH_RECORD_REQUEST_CUT;
  account.arguments_end = begin + arguments.size();
  text_bytes_ += account.request.size();
}

void Recorder::note_response(Call &call, std::string_view json) {
  Account &account = call.account;
  text_bytes_ -= account.response.size();
  account.flags &= ~std::uint32_t{BH_RECORD_RESPONSE_CUT};
  account.result_bytes = json.size();
  account.response = kept(json, BH_RECORD_RESPONSE_CUT, &account.flags);
}

void Recorder::forget(Call &call) noexcept {
  text_bytes_ -= call.account.request.size() + call.account.response.size();
  call.account.clear(max_kept_capacity);
}

// ---- records ---------------------------------------------------------------------------------

// Returns null if the queue is full. If a plugin requires records, space for a request's record is
// reserved when the request arrives, so creating that record cannot fail.
Recorder::Entry *Recorder::new_entry(const End &end, std::uint64_t start_ns, bool has_place) {
  if (!identity_.empty()) {
    const std::string detail = std::exchange(identity_, {});
    Entry *entry = new_entry({BH_OUTCOME_OK, start_ns, 0, {}, {}, {}}, start_ns, false);
    if (entry != nullptr) {
      entry->facts.kind = BH_RECORD_IDENTITY;
      entry->detail = detail;
      keep(*entry);
    }
  }
  const std::uint64_t number = next_number_++;
  if (keeps()) ring_->set_next_number(next_number_);
  if (waiting_.size() >= max_waiting && !(has_place && any_needs(never_without))) {
    ++dropped_;
    return nullptr;
  }
  Entry &entry = waiting_.emplace_back();
  entry.facts.size = sizeof entry.facts;
  entry.facts.number = number;
  barrier_ = number + 1;
  entry.facts.outcome = end.outcome;
  entry.facts.duration_ns = end.now_ns - start_ns;
  entry.facts.start_unix_ns = bh::unix_ns() - entry.facts.duration_ns;
  entry.facts.bytes_out = end.bytes_out;
  entry.rule = bh::cut_text(end.rule, max_text);
  entry.error = bh::cut_text(end.error, max_text);
  // Pass records in batches to reduce wake-ups. The batches are small, so that the records are
  // still in the CPU cache.
  if (waiting_.size() % flush_records == 0 || any_needs(BH_TELEMETRY_COMMITS)) {
    flush_soon();
  } else if (timer_ == 0) {
    start_timer();
  }
  return &entry;
}

void Recorder::describe(const Session &session, Entry *entry) {
  entry->facts.session = session.client();
  entry->transport = session.transport;
  entry->peer = session.address;
  entry->principal = session.principal;
  entry->claimed_name = session.claimed_name;
  entry->facts.client_revision = revision_number(session.protocol());
}

void Recorder::describe(const Call &call, Entry *entry) {
  entry->facts.exchange = call.id;
  entry->facts.session = call.request.reply.session;
  if (call.session != nullptr) describe(*call.session, entry);
  entry->process_name = call.request.process_name;
  entry->method = mcp::to_string(call.method);
  entry->server = call.server;
  entry->name = bh::cut_text(call.name, max_text);
  entry->request_id = bh::cut_text(call.request.id, max_text);
  entry->rule = bh::cut_text(call.account.rule, max_text);
  entry->reason = bh::cut_text(call.account.reason, max_text);
  entry->trace_id = call.account.trace_id;
}

void Recorder::identify(std::string_view profile, std::string_view user) {
  if (!wants_events()) return;
  identity_ = "{";
  bh::json::append_member(&identity_, "profile", profile);
  bh::json::append_member(&identity_, "user", user);
  identity_ += '}';
}

void Recorder::gateway_event(std::uint32_t kind, std::string_view detail) {
  if (!wants_events()) return;
  const std::uint64_t now = reactor_.now_ns();
  Entry *entry = new_entry({BH_OUTCOME_OK, now, 0, {}, {}, {}}, now, true);
  if (entry == nullptr) return;
  entry->facts.kind = kind;
  entry->detail = detail;
  keep(*entry);
}

void Recorder::intent(Call &call) {
  Entry *entry =
      new_entry({BH_OUTCOME_OK, reactor_.now_ns(), 0, {}, {}, {}}, reactor_.now_ns(), true);
  if (entry == nullptr) return;
  Account &account = call.account;
  account.intent = entry->facts.number;
  describe(call, entry);
  entry->facts.kind = BH_RECORD_INTENT;
  entry->facts.bytes_in = call.bytes_in;
  entry->facts.params_bytes = account.params_bytes;
  entry->facts.action = account.action;
  entry->facts.flags = account.flags;
  entry->request = kept(account.request, BH_RECORD_REQUEST_CUT, &entry->facts.flags);
  keep(*entry);
}

void Recorder::event(const Call &call, std::uint32_t kind, std::string_view detail) {
  if (!wants_events()) return;
  const std::uint64_t now = reactor_.now_ns();
  Entry *entry = new_entry({BH_OUTCOME_OK, now, 0, {}, {}, {}}, now, false);
  if (entry == nullptr) return;
  describe(call, entry);
  entry->facts.kind = kind;
  entry->facts.action = call.account.action;
  entry->detail = detail;
  keep(*entry);
}

void Recorder::record(Call &call, const End &end, bool has_place) {
  if (!end.response.empty()) note_response(call, end.response);
  Entry *entry = new_entry(end, call.start_ns, has_place);
  if (entry == nullptr) return forget(call);
  Account &account = call.account;
  entry->rule.clear();
  describe(call, entry);
  if (!end.rule.empty()) entry->rule = bh::cut_text(end.rule, max_text);
  entry->facts.intent = account.intent;
  entry->facts.bytes_in = call.bytes_in;
  entry->facts.params_bytes = account.params_bytes;
  entry->facts.result_bytes = account.result_bytes;
  entry->facts.server_revision = account.server_revision;
  entry->facts.action = account.action;
  entry->facts.flags = account.flags;
  if (end.outcome == BH_OUTCOME_REFUSED && account.action == 0) {
    entry->facts.action = BH_VERDICT_BLOCK;  // the gate refused without a policy decision
  }
  entry->request = std::move(account.request);
  entry->response = std::move(account.response);
  const bool not_sent = end.outcome == BH_OUTCOME_REFUSED && !account.dispatched;
  if (not_sent) entry->facts.flags |= BH_RECORD_NOT_SENT;
  // The arguments of a rejected call are recorded only if all plugins that need texts also need the
  // texts of rejected calls, and if a policy made its decision without rewriting the arguments. A
  // policy that rewrites arguments could have removed some of them.
  const bool decided = account.action != 0 && account.action != BH_VERDICT_REWRITE;
  if (not_sent && (!decided || !records_rejected())) {
    text_bytes_ -= entry->request.size();
    entry->request = account.more_than_arguments && !entry->request.empty()
                         ? R"({"arguments":{"redacted_by_policy":true}})"
                         : redacted(entry->request, account.arguments_begin, account.arguments_end);
    text_bytes_ += entry->request.size();
  }
  account.request.clear();
  account.response.clear();
  account.clear(max_kept_capacity);
  keep(*entry);
}

void Recorder::record(const Message &message, const End &end) {
  const mcp::Scan &scan = *message.scan;
  Entry *entry = new_entry(end, message.start_ns, scan.kind == mcp::Kind::request);
  if (entry == nullptr) return;
  const std::string_view params = scan.params.in(message.text);
  std::string start, scratch;
  entry->facts.session = message.session_handle;
  entry->facts.bytes_in = message.text.size();
  entry->facts.params_bytes = params.size();
  entry->facts.result_bytes = end.response.size();
  if (scan.kind == mcp::Kind::notification) entry->facts.flags |= BH_RECORD_NOTIFICATION;
  if (message.session != nullptr) {
    describe(*message.session, entry);
    entry->process_name = message.session->process_name;
  }
  entry->method =
      scan.method == mcp::Method::other
          ? bh::cut_text(recorded_text(scan.method_text.in(message.text), &start, &scratch), 128)
          : mcp::to_string(scan.method);
  if (scan.method == mcp::Method::none) entry->method = "unknown";  // invalid, or a batch
  const mcp::Range named = scan.name.empty() ? scan.uri : scan.name;
  if (!named.empty())
    entry->name = bh::cut_text(recorded_text(named.in(message.text), &start, &scratch), max_text);
  entry->request_id = bh::cut_text(scan.id.in(message.text), max_text);
  entry->trace_id = trace_id(message.text, scan, message.session);
  entry->request = kept(params, BH_RECORD_REQUEST_CUT, &entry->facts.flags);
  entry->response = kept(end.response, BH_RECORD_RESPONSE_CUT, &entry->facts.flags);
  keep(*entry);
}

// ---- passing records to sinks ----------------------------------------------------------------

void Recorder::start_timer() {
  timer_ = reactor_.timer_start(this, flush_ms, bh::callback(this, [](Recorder &self) {
                                  self.timer_ = 0;
                                  self.flush();
                                  if (!self.waiting_.empty()) self.start_timer();
                                }));
}

// Flushing is deferred, so that the records of one iteration of the event loop are passed on
// together.
void Recorder::flush_soon() {
  if (std::exchange(flush_pending_, true)) return;
  reactor_.defer(this, bh::callback(this, [](Recorder &self) {
                   self.flush_pending_ = false;
                   self.flush();
                   if (!self.waiting_.empty() && self.timer_ == 0) self.start_timer();
                 }));
}

void Recorder::flush() {
  for (Sink &sink : sinks_) offer(sink);
  drop_taken();
}

bh_record Recorder::view_of(const Entry &entry) {
  bh_record r = entry.facts;
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
  r.detail = bh::str(entry.detail);
  r.claimed_name = bh::str(text_of(entry.claimed_name));
  return r;
}

// Returns the positions of the entries that the sink needs, starting at `at`, up to batch_size of
// them.
std::vector<std::uint64_t> Recorder::wanted_from(const Sink &sink, std::uint64_t at) const {
  std::vector<std::uint64_t> places;
  const std::uint64_t end = first_ + waiting_.size();
  const bool events = (sink.needs() & BH_TELEMETRY_EVENTS) != 0;
  for (; at < end && places.size() < batch_size; ++at) {
    if (events || waiting_[at - first_].facts.kind == BH_RECORD_CALL) places.push_back(at);
  }
  return places;
}

void Recorder::offer(Sink &sink) {
  std::vector<bh_record> facts;
  std::vector<const bh_record *> pointers;
  while (true) {
    const auto places = wanted_from(sink, std::max(sink.taken, first_));
    if (places.empty()) break;
    facts.clear();
    pointers.clear();
    for (const std::uint64_t place : places) facts.push_back(view_of(waiting_[place - first_]));
    for (const bh_record &r : facts) pointers.push_back(&r);
    const auto n = static_cast<std::uint32_t>(places.size());
    const std::uint32_t taken = std::min(n, sink.table->batch(sink.self, pointers.data(), n));
    if (taken > 0) sink.taken = places[taken - 1] + 1;
    if (taken < n) return;
  }
  sink.taken = first_ + waiting_.size();
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
