// The rules of telemetry plugins.
#include <array>
#include <string>
#include <vector>

#include "bulkhead/cpp/basics.hpp"
#include "bulkhead/cpp/clock.hpp"
#include "check/scenarios.hpp"
#include "check/started.hpp"

namespace bulkhead::check {
namespace {

constexpr std::uint64_t most_blocked_ms = 1'000;
constexpr int commit_ms = BH_TELEMETRY_COMMIT_MS;
constexpr std::uint32_t known_needs = BH_TELEMETRY_TEXTS | BH_TELEMETRY_BLOCKS |
                                      BH_TELEMETRY_COMMITS | BH_TELEMETRY_EVENTS |
                                      BH_TELEMETRY_REJECTED;

bh_record record(std::uint64_t number) {
  bh_record r{};
  r.size = sizeof r;
  r.outcome = BH_OUTCOME_OK;
  r.exchange = number;
  r.session = 1;
  r.start_unix_ns = bh::unix_ns();
  r.duration_ns = 1'000'000;
  r.bytes_in = 100;
  r.bytes_out = 200;
  r.transport = bh::str("http");
  r.peer = bh::str("127.0.0.1:4711");
  r.principal = bh::str("tester");
  r.process_name = bh::str("check");
  r.method = bh::str("tools/call");
  r.server = bh::str("files");
  r.name = bh::str("read_file");
  r.number = number;
  r.request_id = bh::str("1");
  r.request = bh::str(R"({"name":"read_file","arguments":{}})");
  r.response = bh::str(R"({"content":[]})");
  r.action = BH_VERDICT_ALLOW;
  r.trace_id = bh::str("0123456789abcdef0123456789abcdef");
  return r;
}

// A started telemetry plugin.
class Telemetry : public Started<bh_telemetry> {
 public:
  Telemetry(Trial *trial, const Subject &subject, Rule rule)
      : Started(trial, subject, rule, BH_EXT_TELEMETRY) {}
  std::uint32_t needs() {
    const bool has = BH_HAS(bh_telemetry, table_, needs) && table_->needs != nullptr;
    return has ? table_->needs(tested_->self()) : 0;
  }

  // Returns the number of accepted records.
  std::uint32_t batch(const std::vector<bh_record> &records) {
    std::vector<const bh_record *> pointers;
    for (const bh_record &one : records) pointers.push_back(&one);
    trial_.step(rule_, "batch() with " + std::to_string(records.size()) + " records");
    const std::uint64_t before = bh::monotonic_ms();
    const std::uint32_t accepted = table_->batch(tested_->self(), pointers.data(),
                                                 static_cast<std::uint32_t>(pointers.size()));
    const std::uint64_t took = bh::monotonic_ms() - before;
    if (took > most_blocked_ms) {
      trial_.violated(Rule::batches,
                      "batch() blocked the reactor thread for " + std::to_string(took) + " ms");
    }
    if (accepted > records.size()) {
      trial_.violated(Rule::batches, "batch() with " + std::to_string(records.size()) +
                                         " records returns " + std::to_string(accepted));
    }
    return std::min(accepted, static_cast<std::uint32_t>(records.size()));
  }
};

void check_needs(Trial *trial, const Subject &subject) {
  Telemetry telemetry(trial, subject, Rule::telemetry_needs);
  if (!telemetry.ready()) return;
  trial->checked(Rule::telemetry_needs);
  const std::uint32_t needs = telemetry.needs();
  if ((needs & ~known_needs) != 0) {
    trial->violated(Rule::telemetry_needs, "needs returns bits that are not defined");
  }
  if (telemetry.needs() != needs) {
    trial->violated(Rule::telemetry_needs, "needs returns other bits in a second call");
  }
}

void check_batches(Trial *trial, const Subject &subject) {
  Telemetry telemetry(trial, subject, Rule::batches);
  if (!telemetry.ready()) return;
  trial->checked(Rule::batches);
  telemetry.batch({});
  std::uint64_t number = 0;
  for (const std::size_t size : {1, 7, 512}) {
    std::vector<bh_record> records;
    for (std::size_t i = 0; i < size; ++i) records.push_back(record(++number));
    telemetry.batch(records);
    telemetry.host().base().turn(0);
  }
  telemetry.host().base().run_for(50);
}

void check_hostile_records(Trial *trial, const Subject &subject) {
  Telemetry telemetry(trial, subject, Rule::hostile_records);
  if (!telemetry.ready()) return;
  trial->checked(Rule::hostile_records);
  const std::string text(BH_RECORD_TEXT_BYTES, 'x');
  const std::string odd("a\0\x1b[31m\"\\\n", 9);
  bh_record empty{};
  empty.size = sizeof empty;
  empty.number = 1;
  bh_record large = record(2);
  large.request = large.response = large.detail = bh::str(text);
  bh_record unknown = record(3);
  unknown.kind = 99;
  unknown.outcome = 99;
  unknown.flags = ~0u;
  unknown.detail = bh::str("{}");
  bh_record strange = record(4);
  strange.name = strange.server = strange.method = strange.error = bh::str(odd);
  strange.start_unix_ns = strange.duration_ns = ~std::uint64_t{0};
  std::uint64_t number = 10;
  for (bh_record one : {empty, large, unknown, strange}) {
    telemetry.batch({one});
    one.number = ++number;
    telemetry.batch({one, record(++number)});
  }
  for (std::uint32_t kind = BH_RECORD_INTENT; kind <= BH_RECORD_PLUGIN; ++kind) {
    bh_record one = record(++number);
    one.kind = kind;
    for (const char *detail : {"", "{}", "[]", "{"}) {
      one.detail = bh::str(detail);
      one.number = ++number;
      telemetry.batch({one});
    }
  }
  telemetry.host().base().run_for(50);
}

void check_commits(Trial *trial, const Subject &subject) {
  Telemetry telemetry(trial, subject, Rule::commits);
  if (!telemetry.ready()) return;
  trial->checked(Rule::commits);
  const bool commits = (telemetry.needs() & BH_TELEMETRY_COMMITS) != 0;
  std::uint64_t last = 0;
  for (int i = 0; i < 3; ++i) {
    std::vector<bh_record> records;
    for (int n = 0; n < 4; ++n) records.push_back(record(last + static_cast<unsigned>(n) + 1));
    const std::uint32_t accepted = telemetry.batch(records);
    last += accepted;
    if (accepted < records.size()) break;
  }
  const auto all_stored = [&] {
    const auto reported = telemetry.host().committed();
    return !reported.empty() && reported.back() > last;
  };
  if (commits && last > 0) {
    trial->step(Rule::commits, "storing its records");
    // In pieces, so that the wait is not taken for a function that hangs.
    for (int waited = 0; waited < commit_ms && !all_stored(); waited += 500) {
      telemetry.host().base().run_until(all_stored, 500);
      trial->step(Rule::commits, "storing its records");
    }
    if (!all_stored()) trial->violated(Rule::commits, "accepted records are never committed");
  } else {
    telemetry.host().base().run_for(50);
  }
  std::uint64_t before = 0;
  for (const std::uint64_t below : telemetry.host().committed()) {
    if (!commits) {
      trial->violated(Rule::commits, "committed() is called without BH_TELEMETRY_COMMITS");
    } else if (below < before) {
      trial->violated(Rule::commits, "committed() reports a smaller number than before");
    } else if (below > last + 1) {
      trial->violated(Rule::commits, "committed() reports records that were not accepted");
    }
    before = below;
  }
}

// Records that are not stored yet while the plugin is drained, and while it is stopped.
void check_drain_records(Trial *trial, const Subject &subject) {
  constexpr Rule rule = Rule::drain_records;
  Telemetry telemetry(trial, subject, rule);
  if (!telemetry.ready()) return;
  trial->checked(rule);
  const Held before = held(*trial);
  std::uint64_t last = 0;
  const auto add_batch = [&] {
    std::vector<bh_record> records;
    for (unsigned n = 1; n <= 4; ++n) records.push_back(record(last + n));
    last += telemetry.batch(records);
  };
  add_batch();
  telemetry.tested().drain();
  add_batch();
  const auto all_stored = [&] {
    const auto reported = telemetry.host().committed();
    return !reported.empty() && reported.back() > last;
  };
  if ((telemetry.needs() & BH_TELEMETRY_COMMITS) != 0 && last > 0) {
    // In pieces, so that the wait is not taken for a function that hangs.
    for (int waited = 0; waited < commit_ms && !all_stored(); waited += 500) {
      trial->step(rule, "storing its records after drain()");
      telemetry.host().base().run_until(all_stored, 500);
    }
    if (!all_stored()) trial->violated(rule, "accepted records are not committed after drain()");
  }
  add_batch();
  telemetry.tested().stop();
  check_stopped(trial, rule, &telemetry.host(), before);
  telemetry.host().base().forget();
  telemetry.tested().destroy();
  check_destroyed(trial, rule, before);
}

constexpr std::array scenarios{
    Scenario{BH_EXT_TELEMETRY, check_needs},
    Scenario{BH_EXT_TELEMETRY, check_batches},
    Scenario{BH_EXT_TELEMETRY, check_hostile_records},
    Scenario{BH_EXT_TELEMETRY, check_commits},
    Scenario{BH_EXT_TELEMETRY, check_drain_records, {Rule::commits}},
};

}  // namespace

std::span<const Scenario> telemetry_scenarios() noexcept {
  return scenarios;
}

}  // namespace bulkhead::check
