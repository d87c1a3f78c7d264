#include "link/telemetry_client_stub.hpp"

#include <algorithm>
#include <utility>

#include "bulkhead/cpp/basics.hpp"
#include "link/frames.hpp"
#include "link/texts.hpp"

namespace bulkhead::link {
namespace {

RecordText text_of(const bh_record &r) {
  RecordText text;
  text.outcome = r.outcome;
  text.action = r.action;
  text.flags = r.flags;
  text.params_bytes = r.params_bytes;
  text.result_bytes = r.result_bytes;
  text.number = r.number;
  text.exchange = r.exchange;
  text.session = r.session;
  text.start_unix_ns = r.start_unix_ns;
  text.duration_ns = r.duration_ns;
  text.bytes_in = r.bytes_in;
  text.bytes_out = r.bytes_out;
  text.transport = bh::view(r.transport);
  text.peer = bh::view(r.peer);
  text.principal = bh::view(r.principal);
  text.process_name = bh::view(r.process_name);
  text.method = bh::view(r.method);
  text.server = bh::view(r.server);
  text.name = bh::view(r.name);
  text.rule = bh::view(r.rule);
  text.error = bh::view(r.error);
  text.request_id = bh::view(r.request_id);
  text.request = bh::view(r.request);
  text.response = bh::view(r.response);
  text.reason = bh::view(r.reason);
  text.trace_id = bh::view(r.trace_id);
  text.kind = r.kind;
  text.intent = r.intent;
  text.detail = bh::view(r.detail);
  text.claimed_name = bh::view(r.claimed_name);
  text.client_revision = r.client_revision;
  text.server_revision = r.server_revision;
  return text;
}

bool is_counter_name(std::string_view name) noexcept {
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  });
}

}  // namespace

struct TelemetryClientStub::Receiver final : Channel::Receiver {
  explicit Receiver(TelemetryClientStub &owner) : stub(owner) {}
  void frame(Channel &, const Frame &frame, std::string_view payload, OwnedFd) override {
    stub.on_frame(frame, payload);
  }
  void closed(Channel &, std::string_view) override { stub.lost(); }
  TelemetryClientStub &stub;
};

TelemetryClientStub::TelemetryClientStub(Reactor &reactor, std::string compartment, bool required,
                                         TelemetryEvents &events)
    : reactor_(reactor),
      compartment_(std::move(compartment)),
      required_(required),
      events_(events),
      receiver_(std::make_unique<Receiver>(*this)) {
  needs_timer_ = reactor_.timer_start(this, needs_timeout_ms,
                                      bh::callback(this, [](TelemetryClientStub &self) {
                                        self.needs_timer_ = 0;
                                        self.assume_no_commits();
                                      }));
}

TelemetryClientStub::~TelemetryClientStub() {
  reactor_.forget(this);
}

void TelemetryClientStub::attach(OwnedFd trunk) {
  failure_.clear();
  earlier_counters_ = counters_;
  // The channel's queue is larger than the limit for unacknowledged records, so it is never full.
  trunk_ = std::make_unique<Channel>(reactor_, std::move(trunk), *receiver_, 2 * max_bytes,
                                     4 * max_bytes, false);
  last_ack_ns_ = reactor_.now_ns();
  send_from(0);
}

void TelemetryClientStub::give_up(std::string reason) {
  failure_ = "compartment \"" + compartment_ + "\": " + std::move(reason);
  assume_no_commits();
}

void TelemetryClientStub::expect(std::uint32_t needs) {
  if (needs_known_) return;
  needs_ = needs;
  needs_known_ = true;
  events_.telemetry_taken();
}

// Called if the plugin's needs are unknown and no process will report them soon. Has no effect if
// the profile requires the plugin: every call must then be recorded.
void TelemetryClientStub::assume_no_commits() {
  if (needs_known_ || required_) return;
  needs_ &= ~std::uint32_t{BH_TELEMETRY_COMMITS | BH_TELEMETRY_BLOCKS};
  events_.telemetry_taken();
}

void TelemetryClientStub::lost() {
  trunk_.reset();
  reactor_.timer_cancel(std::exchange(timer_, 0));
}

std::uint32_t TelemetryClientStub::batch(const bh_record *const *records, std::uint32_t n) {
  const std::size_t first = frames_.size();
  if (kept_ == 0) last_ack_ns_ = reactor_.now_ns();
  std::uint32_t taken = 0;
  while (taken < n && !full()) {
    Kept frame = std::exchange(spare_, {});
    ArchiveWriter writer(std::move(frame.bytes));
    while (taken < n && frame.places.size() < frame_records && writer.size() < frame_bytes &&
           kept_ + frame.places.size() < max_records && bytes_ + writer.size() < max_bytes) {
      const bh_record &record = *records[taken++];
      frame.places.push_back({record.number, writer.size()});
      writer(text_of(record));
    }
    frame.bytes = writer.take();
    const std::size_t count = frame.places.size(), bytes = frame.bytes.size();
    frames_.push_back(std::move(frame));  // before the counts change, because it may throw
    kept_ += count;
    bytes_ += bytes;
  }
  if (trunk_ != nullptr) send_from(first);
  return taken;
}

void TelemetryClientStub::send_from(std::size_t index) {
  for (; index < frames_.size(); ++index) {
    const Kept &kept = frames_[index];
    Frame frame;
    frame.kind = FrameKind::telemetry_batch;
    frame.exchange = earlier_below_;
    frame.code = static_cast<std::uint32_t>(kept.places.size() - kept.taken);
    trunk_->send(frame, std::string_view(kept.bytes).substr(kept.places[kept.taken].begin));
  }
  if (kept_ != 0 && timer_ == 0) watch_silence();
}

void TelemetryClientStub::on_frame(const Frame &frame, std::string_view payload) {
  last_ack_ns_ = reactor_.now_ns();
  if (frame.kind == FrameKind::plugin_failed) {
    failure_ = "compartment \"" + compartment_ + "\": " + std::string(payload);
    assume_no_commits();
    return;
  }
  if (frame.kind == FrameKind::telemetry_needs) {
    needs_ = frame.code;
    needs_known_ = true;
    events_.telemetry_taken();
    return;
  }
  if (frame.kind == FrameKind::telemetry_counters && take_counters(payload)) return;
  if (frame.kind == FrameKind::telemetry_taken && acknowledge(frame.exchange)) return;
  lost();
  events_.process_unhealthy(compartment_);
}

// Acknowledges all records below `number`. Returns false if there are unacknowledged records and
// `number` is greater than the last record's number plus 1.
bool TelemetryClientStub::acknowledge(std::uint64_t number) {
  if (!frames_.empty() && number > frames_.back().places.back().number + 1) return false;
  const std::size_t before = kept_;
  acknowledged_ = std::max(acknowledged_, number);
  while (!frames_.empty()) {
    Kept &frame = frames_.front();
    for (; frame.taken < frame.places.size() && frame.places[frame.taken].number < number;
         --kept_) {
      ++frame.taken;
    }
    if (frame.taken < frame.places.size()) break;
    drop_front();
  }
  if ((needs_ & BH_TELEMETRY_COMMITS) != 0) events_.telemetry_committed(*this, number);
  if (kept_ != before) events_.telemetry_taken();
  return true;
}

void TelemetryClientStub::drop_front() {
  bytes_ -= frames_.front().bytes.size();
  spare_ = std::move(frames_.front());
  frames_.pop_front();
  if (spare_.bytes.capacity() > 2 * frame_bytes) spare_.bytes = std::string();
  spare_.bytes.clear();
  spare_.places.clear();
  spare_.taken = 0;
}

// Stores the counters that the plugin sent. Returns false if they are invalid. A new process begins
// at 0, so the counters of earlier processes are added.
bool TelemetryClientStub::take_counters(std::string_view payload) {
  CountersText text;
  if (!from_bytes(payload, &text) || text.values.size() > max_counters) return false;
  for (const auto &[name, value] : text.values) {
    if (!is_counter_name(name)) return false;
  }
  for (const auto &[name, earlier] : earlier_counters_) {
    const auto at = std::find_if(text.values.begin(), text.values.end(),
                                 [&](const auto &counter) { return counter.first == name; });
    if (at != text.values.end()) {
      at->second += earlier;
    } else if (text.values.size() < max_counters) {
      text.values.emplace_back(name, earlier);
    }
  }
  counters_ = std::move(text.values);
  return true;
}

void TelemetryClientStub::watch_silence() {
  timer_ = reactor_.timer_start(
      this, silence_ms / 4, bh::callback(this, [](TelemetryClientStub &self) {
        self.timer_ = 0;
        if (self.trunk_ == nullptr || self.kept_ == 0) return;
        if (self.reactor_.now_ns() - self.last_ack_ns_ < silence_ms * 1'000'000u) {
          return self.watch_silence();
        }
        self.lost();
        self.events_.process_unhealthy(self.compartment_);
      }));
}

const bh_telemetry &TelemetryClientStub::table() noexcept {
  static constexpr bh_telemetry table{
      sizeof(bh_telemetry), 0,
      [](void *self, const bh_record *const *records, std::uint32_t n) {
        return static_cast<TelemetryClientStub *>(self)->batch(records, n);
      },
      [](void *self) { return static_cast<TelemetryClientStub *>(self)->needs_; }};
  return table;
}

}  // namespace bulkhead::link
