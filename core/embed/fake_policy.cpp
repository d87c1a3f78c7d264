#define BH_STATIC_PLUGIN
#include "embed/fake_policy.hpp"

#include <cstdlib>

#include "bulkhead/cpp/tables.hpp"

namespace {

const bh_host_policy *policy_host() {
  const bh_host *host = FakeJudge::get().host;
  if (host == nullptr) std::abort();  // the plugin does not exist yet
  return static_cast<const bh_host_policy *>(host->get_ext(host->ctx, BH_EXT_HOST_POLICY));
}

struct Plain {
  bh_status configure(bh_str, bh_error *) { return BH_OK; }
  bh_status start(bh_error *) { return BH_OK; }
  void stop() noexcept {}
};

class FakePolicy : public Plain {
 public:
  static constexpr bh::Info info{.id = "fake-policy",
                                 .name = "Fake",
                                 .version = "1",
                                 .vendor = "test",
                                 .config_schema = {},
                                 .provides = {BH_EXT_POLICY}};
  explicit FakePolicy(const bh_host *host) { FakeJudge::get().host = host; }
  const void *get_ext(const char *id) noexcept {
    return bh::is(id, BH_EXT_POLICY) ? bh::policy_table<FakePolicy>() : nullptr;
  }
  std::uint32_t needs() const noexcept { return FakeJudge::get().needs; }
  bh_status decide(const bh_policy_request &r, bh_verdict *out, bh_error *) {
    return judge("decide", r, r.arguments, out);
  }
  bh_status observe(const bh_policy_request &r, bh_str result, bh_verdict *out, bh_error *) {
    return judge("observe", r, result, out);
  }
  bh_status filter(const bh_policy_request &r, bh_error *) {
    bh_verdict none{};
    return judge("filter", r, {}, &none);
  }

 private:
  static bh_status judge(const char *look, const bh_policy_request &r, bh_str text,
                         bh_verdict *out) {
    FakeJudge &judge = FakeJudge::get();
    judge.asked.push_back({look, r.exchange, std::string(bh::view(r.server)),
                           std::string(bh::view(r.name)), std::string(bh::view(text)), r.flags,
                           r.event, std::string(bh::view(r.method))});
    out->verdict = BH_VERDICT_ALLOW;
    return judge.judge ? judge.judge(FakeJudge::Asked(judge.asked.back()), out) : BH_OK;
  }
};

class FakeTelemetry : public Plain {
 public:
  static constexpr bh::Info info{.id = "fake-telemetry",
                                 .name = "Fake",
                                 .version = "1",
                                 .vendor = "test",
                                 .config_schema = {},
                                 .provides = {BH_EXT_TELEMETRY}};
  explicit FakeTelemetry(const bh_host *host) { FakeJudge::get().telemetry_host = host; }
  const void *get_ext(const char *id) noexcept {
    return bh::is(id, BH_EXT_TELEMETRY) ? bh::telemetry_table<FakeTelemetry>() : nullptr;
  }
  std::uint32_t batch(const bh_record *const *records, std::uint32_t n) {
    if (!FakeJudge::get().takes) return 0;
    const auto text = [](bh_str s) { return std::string(bh::view(s)); };
    for (std::uint32_t i = 0; i < n; ++i) {
      const bh_record &r = *records[i];
      FakeJudge::get().records.push_back(
          {r.outcome,        text(r.server), text(r.name),       text(r.rule),
           text(r.error),    text(r.method), text(r.request_id), text(r.request),
           text(r.response), text(r.reason), text(r.trace_id),   r.params_bytes,
           r.result_bytes,   r.number,       r.action,           r.flags,
           r.kind,           r.intent,       text(r.detail),     text(r.claimed_name)});
    }
    return n;
  }
  std::uint32_t needs() const noexcept { return FakeJudge::get().telemetry_needs; }
};

}  // namespace

void FakeJudge::commit() const {
  const auto *table = static_cast<const bh_host_telemetry *>(
      telemetry_host->get_ext(telemetry_host->ctx, BH_EXT_HOST_TELEMETRY));
  table->committed(telemetry_host->ctx, records.empty() ? 0 : records.back().number + 1);
}

FakeJudge &FakeJudge::get() {
  static FakeJudge judge;
  return judge;
}

bh_status FakeJudge::decided(std::uint64_t number, std::uint32_t verdict, std::string_view rewrite,
                             std::string_view rule) {
  bh_verdict out{};
  out.size = sizeof out;
  out.verdict = verdict;
  out.rule = bh::str(rule);
  out.arguments = bh::str(rewrite);
  return policy_host()->decided(host->ctx, number, &out);
}

bh_status FakeJudge::filtered(std::uint64_t number, bool listed) {
  return policy_host()->filtered(host->ctx, number, listed ? 1 : 0);
}

void FakeJudge::changed() {
  policy_host()->changed(host->ctx);
}

BH_PLUGIN(FakePolicy)
BH_PLUGIN(FakeTelemetry)
