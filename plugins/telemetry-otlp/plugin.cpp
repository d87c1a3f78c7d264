// Exports each record as a span, and counters as metrics, to an OpenTelemetry collector. The plugin
// never delays calls: if its queue is full, spans are dropped and counted.
//
// Runs on the reactor thread.
#include <bulkhead/abi/ext/draft/mask.h>
#include <bulkhead/abi/ext/telemetry.h>
#include <bulkhead/cpp/clock.hpp>
#include <bulkhead/cpp/plugin.hpp>
#include <bulkhead/cpp/tables.hpp>

#include <memory>
#include <optional>

#include "egress-kit/post.hpp"
#include "telemetry-otlp/config.hpp"
#include "telemetry-otlp/exporter.hpp"
#include "telemetry-otlp/meters.hpp"
#include "telemetry-otlp/span.hpp"

namespace otlp {

constexpr std::uint64_t max_metrics_answer = 64 << 10;

class TelemetryOtlp {
 public:
  static constexpr bh::Info info{.id = "telemetry-otlp",
                                 .name = "OpenTelemetry over HTTP",
                                 .version = "0.1.0",
                                 .vendor = "Bulkhead",
                                 .config_schema = R"({"type":"object"})",
                                 .provides = {BH_EXT_TELEMETRY}};

  explicit TelemetryOtlp(const bh_host *host) : host_(host) {}

  bh_status configure(bh_str json, bh_error *error) {
    if (!host_.has_reactor()) return bh::fail(error, BH_E_UNSUPPORTED, "the host has no reactor");
    const std::string bad = Config::read(bh::view(json), &config_);
    return bad.empty() ? BH_OK : bh::fail(error, BH_E_INVALID, bad);
  }

  bh_status start(bh_error *error) {
    const std::string bad = egress::announce(host_, config_.traces);
    if (!bad.empty()) return bh::fail(error, BH_E_UNAVAILABLE, bad);
    metrics_ = host_.ext<bh_host_metrics>(BH_EXT_HOST_METRICS);
    if (metrics_ != nullptr) {
      sent_counter_ = metrics_->counter(host_.ctx(), bh::str("spans"));
      dropped_counter_ = metrics_->counter(host_.ctx(), bh::str("dropped_spans"));
    }
    if (const auto *own = host_.ext<bh_host_mask>(BH_EXT_HOST_MASK)) {
      mask_ = [this, own](std::string_view text) {
        bh_buf out{};
        const bool some = own->mask(host_.ctx(), bh::str(text), &out) != 0;
        return std::string(some ? bh::Buf(out).view() : text);
      };
    }
    start_unix_ns_ = bh::unix_ns();
    exporter_.emplace(host_, config_, [this](std::uint64_t n) { drop(n); });
    if (config_.send_metrics) report_later();
    return BH_OK;
  }

  void stop() noexcept {
    host_.timer_cancel(timer_);
    report_.reset();
    if (exporter_ && exporter_->waiting() != 0) {
      host_.log(BH_LOG_INFO, std::to_string(exporter_->waiting()) + " spans were not sent");
    }
    exporter_.reset();
  }

  const void *get_ext(const char *id) noexcept {
    return bh::is(id, BH_EXT_TELEMETRY) ? bh::telemetry_table<TelemetryOtlp>() : nullptr;
  }

  // Always accepts the whole batch, because all telemetry plugins share the host's record queue.
  std::uint32_t batch(const bh_record *const *records, std::uint32_t n) {
    for (std::uint32_t i = 0; i < n; ++i) {
      const bh_record &record = *records[i];
      const bool is_call = !BH_HAS(bh_record, &record, kind) || record.kind == BH_RECORD_CALL;
      if (config_.send_metrics && is_call) meters_.add(record);
      if (!config_.send_traces) continue;
      if (std::string span = span_json(record, mask_); !span.empty()) {
        exporter_->add(std::move(span));
      }
    }
    if (metrics_ != nullptr) metrics_->add(host_.ctx(), sent_counter_, n);
    return n;
  }
  // Message contents are not needed. Events are changes of plugins and policies.
  std::uint32_t needs() const noexcept {
    return config_.send_traces ? std::uint32_t{BH_TELEMETRY_EVENTS} : 0u;
  }

 private:
  void drop(std::uint64_t n) {
    meters_.drop(n);
    if (metrics_ != nullptr) metrics_->add(host_.ctx(), dropped_counter_, n);
    if (!std::exchange(dropping_, true)) {
      host_.log(BH_LOG_WARN, "spans are dropped: the queue of " +
                                 std::to_string(config_.queue_spans) +
                                 " spans (queue_spans) is full, or the collector " +
                                 config_.traces.shown() + " rejects them");
    }
  }

  void report_later() {
    timer_ = host_.timer_start(config_.metrics_ms, bh::callback(this, [](TelemetryOtlp &self) {
                                 self.timer_ = 0;
                                 const bh_status made = bh::guarded(nullptr, [&] {
                                   self.report();
                                   return BH_OK;
                                 });
                                 if (made == BH_OK) return;
                                 // If memory allocation fails, this report is skipped. The counters
                                 // are cumulative, so the next report includes the same counts.
                                 self.report_.reset();
                                 self.report_later();
                               }));
  }

  // Counters are cumulative, so a failed report is not retried: the next report includes its
  // counts.
  void report() {
    std::string body = meters_.body(config_.service_name, start_unix_ns_, bh::unix_ns());
    if (body.empty()) return report_later();
    report_ = std::make_unique<egress::Post>(host_, config_.metrics, max_metrics_answer,
                                             [this](egress::Post::Answer &&) {
                                               const auto ended = std::move(report_);
                                               report_later();
                                             });
    report_->start(std::move(body));
  }

  const bh::Host host_;
  Config config_;
  Mask mask_;
  const bh_host_metrics *metrics_ = nullptr;
  bh_metric sent_counter_ = 0, dropped_counter_ = 0;
  std::optional<Exporter> exporter_;
  Meters meters_;
  std::unique_ptr<egress::Post> report_;
  bh_timer timer_ = 0;
  std::uint64_t start_unix_ns_ = 0;
  bool dropping_ = false;
};

}  // namespace otlp

using TelemetryOtlp = otlp::TelemetryOtlp;
BH_PLUGIN(TelemetryOtlp)
