// telemetry-sqlite: a telemetry plugin that records calls in SQLite files as a tamper-evident chain
// of rows (docs/telemetry.md).
#include <bulkhead/abi/ext/draft/event.h>
#include <bulkhead/abi/ext/draft/mask.h>
#include <bulkhead/abi/ext/draft/sign.h>
#include <bulkhead/cpp/host.hpp>
#include <bulkhead/cpp/plugin.hpp>
#include <bulkhead/cpp/tables.hpp>
#include <bulkhead/cpp/text.hpp>

#include <array>
#include <memory>
#include <string>

#include "record-store/verify.hpp"
#include "telemetry-sqlite/config.hpp"
#include "telemetry-sqlite/writer.hpp"

namespace telemetry_sqlite {

// Number of short strings in a record. The plugin limits the length of all strings, because a
// compromised gateway process may send longer ones, and because verification rejects rows that are
// larger than max_value_bytes. Masking can triple the size of a string (`1,` becomes `"***",`).
constexpr std::size_t short_texts = 13;
static_assert(3 * (2 * BH_RECORD_TEXT_BYTES + BH_EVENT_BYTES + short_texts * max_short_text) <
              record_store::VerifyOptions::max_value_bytes / 2);

// Copies a string, truncated to at most `most` bytes at a character boundary. Sets *is_cut if the
// string was truncated.
std::string bounded(bh_str s, std::size_t most, bool *is_cut = nullptr) {
  const std::string_view text = bh::view(s);
  if (text.size() <= most) return std::string(text);
  if (is_cut != nullptr) *is_cut = true;
  return std::string(bh::cut_text(text, most));
}

class TelemetrySqlite {
 public:
  static constexpr std::uint64_t count_ms = 500;  // interval between updates of the host's counters

  static constexpr bh::Info info{.id = "telemetry-sqlite",
                                 .name = "Session database",
                                 .version = "0.1.0",
                                 .vendor = "Bulkhead",
                                 .config_schema = config_schema,
                                 .provides = {BH_EXT_TELEMETRY}};

  explicit TelemetrySqlite(const bh_host *host) : host_(host) {}

  bh_status configure(bh_str json, bh_error *error) {
    const auto *store = host_.ext<bh_host_store>(BH_EXT_HOST_STORE);
    if (store == nullptr || !host_.has_reactor()) {
      return bh::fail(error, BH_E_UNSUPPORTED, "the host has no folder or no reactor");
    }
    if (const bh_status status = parse_config(bh::view(json), &config_, error); status != BH_OK) {
      return status;
    }
    folder_ = bh::view(store->folder(host_.ctx()));
    if (folder_.empty()) {
      return bh::fail(error, BH_E_UNAVAILABLE,
                      "there is no folder for records (state_dir); see the log for the reason");
    }
    committed_ = host_.ext<bh_host_telemetry>(BH_EXT_HOST_TELEMETRY);
    if (config_.full && committed_ == nullptr) {
      return bh::fail(error, BH_E_UNSUPPORTED,
                      "mode \"full\": this host does not wait for records");
    }
    sign_ = host_.ext<bh_host_sign>(BH_EXT_HOST_SIGN);
    mask_ = host_.ext<bh_host_mask>(BH_EXT_HOST_MASK);
    metrics_ = host_.ext<bh_host_metrics>(BH_EXT_HOST_METRICS);
    if (metrics_ == nullptr) return BH_OK;
    for (Counter &counter : shown_) {
      counter.metric = metrics_->counter(host_.ctx(), bh::str(counter.name));
    }
    return BH_OK;
  }

  bh_status start(bh_error *error) {
    writer_ = std::make_unique<Writer>(
        config_, folder_.substr(folder_.rfind('/') + 1),
        [this](std::int32_t level, const std::string &text) { host_.log(level, text); },
        [this](const std::string &statement, bh_signature *out) {
          return sign_ != nullptr &&
                 sign_->sign(host_.ctx(), bh::str(statement), out, nullptr) == BH_OK;
        },
        [this](std::uint64_t below) {
          if (config_.full) committed_->committed(host_.ctx(), below);
        },
        [this](std::string *text) { return mask_own(text); });
    if (const std::string problem = writer_->start(folder_); !problem.empty()) {
      writer_.reset();
      return bh::fail(error, BH_E_IO, problem);
    }
    if (sign_ == nullptr)
      host_.log(BH_LOG_WARN, "the host does not sign checkpoints, so none are written");
    count();
    return BH_OK;
  }

  void stop() noexcept {
    host_.timer_cancel(timer_);
    if (writer_ != nullptr) writer_->stop();
    bring_up();
  }

  const void *get_ext(const char *id) noexcept {
    return bh::is(id, BH_EXT_TELEMETRY) ? bh::telemetry_table<TelemetrySqlite>() : nullptr;
  }

  std::uint32_t needs() const noexcept {
    std::uint32_t out = BH_TELEMETRY_EVENTS;
    if (config_.full) out |= BH_TELEMETRY_COMMITS;
    if (config_.texts) out |= BH_TELEMETRY_TEXTS;
    if (config_.rejected_arguments) out |= BH_TELEMETRY_REJECTED;
    if (config_.block) out |= BH_TELEMETRY_BLOCKS;
    return out;
  }

  std::uint32_t batch(const bh_record *const *records, std::uint32_t n) {
    if (writer_ == nullptr) return 0;
    for (std::uint32_t i = 0; i < n; ++i) {
      try {
        if (!writer_->put(row_of(*records[i]))) return i;
      } catch (const std::exception &) {
        return i;  // out of memory; the host will send the record again
      }
    }
    return n;
  }

 private:
  struct Counter {
    std::string_view name;
    std::atomic<std::uint64_t> WriterCounters::*value;
    bh_metric metric = 0;
    std::uint64_t said = 0;
  };

  static Row row_of(const bh_record &r) {
    const auto text = [](bh_str s) { return bounded(s, max_short_text); };
    Row row;
    row.outcome = r.outcome;
    row.number = r.number;
    row.session = r.session;
    row.start_unix_ns = r.start_unix_ns;
    row.duration_ns = r.duration_ns;
    row.transport = text(r.transport);
    row.peer = text(r.peer);
    row.principal = text(r.principal);
    row.process_name = text(r.process_name);
    row.method = text(r.method);
    row.server = text(r.server);
    row.name = text(r.name);
    row.rule = text(r.rule);
    row.error = text(r.error);
    if (BH_HAS(bh_record, &r, claimed_name)) row.claimed_name = text(r.claimed_name);
    if (BH_HAS(bh_record, &r, server_revision)) {
      row.client_revision = r.client_revision;
      row.server_revision = r.server_revision;
    }
    if (BH_HAS(bh_record, &r, detail)) {
      row.kind = r.kind;
      row.intent = r.intent;
      row.detail = bounded(r.detail, BH_EVENT_BYTES);
    }
    if (!BH_HAS(bh_record, &r, trace_id)) return row;  // the host is older than this field
    row.action = r.action;
    row.flags = r.flags;
    row.params_bytes = r.params_bytes;
    row.result_bytes = r.result_bytes;
    row.request_id = text(r.request_id);
    bool request_cut = false, response_cut = false;
    row.request = bounded(r.request, BH_RECORD_TEXT_BYTES, &request_cut);
    row.response = bounded(r.response, BH_RECORD_TEXT_BYTES, &response_cut);
    if (request_cut) row.flags |= BH_RECORD_REQUEST_CUT;
    if (response_cut) row.flags |= BH_RECORD_RESPONSE_CUT;
    row.reason = text(r.reason);
    row.trace_id = text(r.trace_id);
    return row;
  }

  // Masks the gateway's own credentials. Returns the number of masked values. Runs on the writer
  // thread.
  std::uint64_t mask_own(std::string *text) const {
    bh_buf out{};
    const std::uint64_t n = mask_ == nullptr ? 0 : mask_->mask(host_.ctx(), bh::str(*text), &out);
    if (n != 0) *text = bh::Buf(out).view();
    return n;
  }

  void count() {
    bring_up();
    timer_ = host_.timer_start(count_ms, bh::callback<&TelemetrySqlite::count>(this));
  }
  void bring_up() noexcept {
    if (writer_ == nullptr || metrics_ == nullptr) return;
    for (Counter &counter : shown_) {
      const std::uint64_t now = writer_->counters().*counter.value;
      if (now != counter.said) metrics_->add(host_.ctx(), counter.metric, now - counter.said);
      counter.said = now;
    }
  }

  bh::Host host_;
  Config config_;
  std::string folder_;
  const bh_host_sign *sign_ = nullptr;
  const bh_host_telemetry *committed_ = nullptr;
  const bh_host_mask *mask_ = nullptr;
  const bh_host_metrics *metrics_ = nullptr;
  std::unique_ptr<Writer> writer_;
  bh_timer timer_ = 0;
  std::array<Counter, 7> shown_{{{"records_written", &WriterCounters::written},
                                 {"records_lost", &WriterCounters::lost},
                                 {"records_spilled", &WriterCounters::spilled},
                                 {"records_known", &WriterCounters::known},
                                 {"values_masked", &WriterCounters::masked},
                                 {"write_errors", &WriterCounters::write_errors},
                                 {"checkpoints", &WriterCounters::checkpoints}}};
};

}  // namespace telemetry_sqlite

using telemetry_sqlite::TelemetrySqlite;
BH_PLUGIN(TelemetrySqlite)
