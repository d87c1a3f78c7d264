#include "link/telemetry_server_stub.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "bulkhead/cpp/basics.hpp"
#include "link/frames.hpp"

namespace bulkhead::link {
namespace {

bh_record record_of(const RecordText &text) {
  bh_record r{};
  r.size = sizeof r;
  r.outcome = text.outcome;
  r.action = text.action;
  r.flags = text.flags;
  r.params_bytes = text.params_bytes;
  r.result_bytes = text.result_bytes;
  r.number = text.number;
  r.exchange = text.exchange;
  r.session = text.session;
  r.start_unix_ns = text.start_unix_ns;
  r.duration_ns = text.duration_ns;
  r.bytes_in = text.bytes_in;
  r.bytes_out = text.bytes_out;
  r.transport = bh::str(text.transport);
  r.peer = bh::str(text.peer);
  r.principal = bh::str(text.principal);
  r.process_name = bh::str(text.process_name);
  r.method = bh::str(text.method);
  r.server = bh::str(text.server);
  r.name = bh::str(text.name);
  r.rule = bh::str(text.rule);
  r.error = bh::str(text.error);
  r.request_id = bh::str(text.request_id);
  r.request = bh::str(text.request);
  r.response = bh::str(text.response);
  r.reason = bh::str(text.reason);
  r.trace_id = bh::str(text.trace_id);
  r.kind = text.kind;
  r.intent = text.intent;
  r.detail = bh::str(text.detail);
  r.claimed_name = bh::str(text.claimed_name);
  r.client_revision = text.client_revision;
  r.server_revision = text.server_revision;
  return r;
}

}  // namespace

struct TelemetryServerStub::Receiver final : Channel::Receiver {
  explicit Receiver(TelemetryServerStub &owner) : stub(owner) {}
  void frame(Channel &, const Frame &frame, std::string_view payload, OwnedFd) override {
    stub.on_frame(frame, payload);
  }
  void closed(Channel &, std::string_view) override { stub.lost(); }
  TelemetryServerStub &stub;
};

TelemetryServerStub::TelemetryServerStub(Reactor &reactor, const ServedPlugin &plugin)
    : reactor_(reactor), plugin_(plugin), receiver_(std::make_unique<Receiver>(*this)) {}

TelemetryServerStub::~TelemetryServerStub() {
  reactor_.forget(this);
}

void TelemetryServerStub::attach(OwnedFd trunk, std::function<void()> on_lost) {
  offer();  // last attempt to store the previous endpoint's records
  forget_waiting();
  known_taken_ = std::max(known_taken_, taken_);
  known_committed_ = std::max(known_committed_, committed_);
  taken_ = committed_ = 0;
  on_lost_ = std::move(on_lost);
  reactor_.timer_cancel(std::exchange(counters_timer_, 0));
  trunk_ = std::make_unique<Channel>(reactor_, std::move(trunk), *receiver_,
                                     2 * TelemetryClientStub::max_bytes,
                                     4 * TelemetryClientStub::max_bytes, false);
  counters_sent_.clear();
  Frame frame;
  frame.kind = FrameKind::plugin_failed;
  const bh_telemetry *table = plugin_.telemetry;
  if (table == nullptr) {
    trunk_->send(frame, plugin_.failure);
    return;
  }
  frame.kind = FrameKind::telemetry_needs;
  frame.code = needs();
  trunk_->send(frame);
  send_counters();
}

std::uint32_t TelemetryServerStub::needs() const {
  const bh_telemetry *table = plugin_.telemetry;
  const bool asks =
      table != nullptr && BH_HAS(bh_telemetry, table, needs) && table->needs != nullptr;
  return asks ? table->needs(plugin_.self) : 0;
}

// Sends the counters now, and again every counters_ms if they have changed.
void TelemetryServerStub::send_counters() {
  counters_timer_ =
      reactor_.timer_start(this, counters_ms, bh::callback(this, [](TelemetryServerStub &self) {
                             self.counters_timer_ = 0;
                             if (self.trunk_ == nullptr) return;
                             // This shows that the process is responsive even if its disk is slow.
                             const bool commits = (self.needs() & BH_TELEMETRY_COMMITS) != 0;
                             if (commits && self.committed_ < self.taken_) self.send_taken();
                             self.send_counters();
                           }));
  if (!plugin_.counters) return;
  CountersText text{plugin_.counters()};
  if (text.values == counters_sent_) return;
  Frame frame;
  frame.kind = FrameKind::telemetry_counters;
  trunk_->send(frame, to_bytes(text));
  counters_sent_ = std::move(text.values);
}

void TelemetryServerStub::lost() {
  trunk_.reset();
  if (const auto on_lost = std::exchange(on_lost_, nullptr)) on_lost();
}

void TelemetryServerStub::on_frame(const Frame &frame, std::string_view payload) {
  if (plugin_.telemetry == nullptr) return;
  const std::size_t room = TelemetryClientStub::max_records -
                           std::min(waiting_records_, TelemetryClientStub::max_records);
  if (frame.kind != FrameKind::telemetry_batch || frame.code > room ||
      payload.size() > max_waiting_bytes - waiting_bytes_) {
    return lost();
  }
  earlier_below_ = frame.exchange;
  if (!read(payload, frame.code, 0)) {
    forget_waiting();
    return lost();
  }
  // Usually the plugin accepts all records directly from the received frame.
  const std::uint32_t taken = waiting_.empty() ? offer_read() : 0;
  if (taken < frame.code) {
    waiting_.push_back({std::string(payload), frame.code, taken});
    waiting_records_ += frame.code - taken;
    waiting_bytes_ += payload.size();
    if (timer_ == 0) offer_later();
  }
  send_taken();
}

void TelemetryServerStub::forget_waiting() {
  waiting_.clear();
  waiting_records_ = 0;
  waiting_bytes_ = 0;
}

// Parses the records, except the first `from`, into records_. The strings in records_ point into
// the payload. Returns false if the payload is malformed.
bool TelemetryServerStub::read(std::string_view payload, std::uint32_t count, std::uint32_t from) {
  records_.clear();
  ArchiveReader reader(payload);
  for (std::uint32_t i = 0; i < count; ++i) {
    RecordText text;
    reader(text);
    if (i >= from) records_.push_back(record_of(text));
  }
  return reader.done();
}

// Offers records_ to the plugin once. Returns the number of accepted records.
std::uint32_t TelemetryServerStub::offer_read() {
  std::vector<const bh_record *> wanted;
  wanted.reserve(records_.size());
  const bool events = (needs() & BH_TELEMETRY_EVENTS) != 0;
  // Skips records that the plugin does not need: the client stub may have sent them before it knew
  // the plugin's needs. Also skips records that the plugin has already received.
  for (const bh_record &record : records_) {
    const bool known = record.number < earlier_below_ && record.number < known_taken_;
    if (!known && (events || record.kind == BH_RECORD_CALL)) wanted.push_back(&record);
  }
  const auto n = static_cast<std::uint32_t>(wanted.size());
  const std::uint32_t taken =
      n == 0 ? 0 : std::min(n, plugin_.telemetry->batch(plugin_.self, wanted.data(), n));
  const auto done =
      taken == n ? records_.size() : static_cast<std::size_t>(wanted[taken] - records_.data());
  if (done > 0) taken_ = records_[done - 1].number + 1;
  committed_ = std::max(committed_, std::min(known_committed_, taken_));
  return static_cast<std::uint32_t>(done);
}

void TelemetryServerStub::offer() {
  if (plugin_.telemetry == nullptr) return;
  while (!waiting_.empty()) {
    Waiting &first = waiting_.front();
    read(first.payload, first.count, first.taken);
    const std::uint32_t taken = offer_read();
    first.taken += taken;
    waiting_records_ -= taken;
    if (first.taken < first.count) {
      if (timer_ == 0) offer_later();
      break;
    }
    waiting_bytes_ -= first.payload.size();
    waiting_.pop_front();
  }
  send_taken();
}

void TelemetryServerStub::offer_later() {
  timer_ = reactor_.timer_start(this, retry_ms, bh::callback(this, [](TelemetryServerStub &self) {
                                  self.timer_ = 0;
                                  self.offer();
                                }));
}

void TelemetryServerStub::committed(std::uint64_t below) {
  committed_ = std::max(committed_, std::min(below, taken_));
  send_taken();
}

void TelemetryServerStub::send_taken() {
  if (trunk_ == nullptr) return;
  Frame frame;
  frame.kind = FrameKind::telemetry_taken;
  frame.exchange = (needs() & BH_TELEMETRY_COMMITS) != 0 ? committed_ : taken_;
  trunk_->send(frame);
}

}  // namespace bulkhead::link
