// Tests the complete plugin with a fake HTTP client.
#include <bulkhead/abi/ext/telemetry.h>
#include <bulkhead/abi/plugin.h>

#include <rapidjson/document.h>
#include <catch2/catch.hpp>

#include "egress-kit/testing.hpp"

extern "C" const bh_entry *bh_static_entry_TelemetryOtlp(void);

namespace {

struct World {
  bh::testing::FakeHost host;
  egress::testing::FakeHttp http{host};
  const bh_plugin *plugin = nullptr;
  const bh_telemetry *telemetry = nullptr;
  std::uint64_t number = 0;

  explicit World(const std::string &more = R"(,"signals":["traces"],"flush_ms":10)") {
    bh_error error = bh::make_error();
    REQUIRE(bh_static_entry_TelemetryOtlp()->create("telemetry-otlp", host.host(), &plugin,
                                                    &error) == BH_OK);
    const std::string config = R"({"url":"https://otel.example:4318")" + more + "}";
    REQUIRE(plugin->configure(plugin->self, bh::str(config), &error) == BH_OK);
    REQUIRE(plugin->start(plugin->self, &error) == BH_OK);
    telemetry = static_cast<const bh_telemetry *>(plugin->get_ext(plugin->self, BH_EXT_TELEMETRY));
  }
  ~World() {
    plugin->stop(plugin->self);
    CHECK(http.open() == 0);
    CHECK(host.timers() == 0);
    plugin->destroy(plugin->self);
    CHECK(host.faults().empty());
  }
  void record(int n = 1) {
    for (int i = 0; i < n; ++i) {
      bh_record r{};
      r.size = sizeof r;
      r.outcome = BH_OUTCOME_OK;
      r.number = ++number;
      r.method = bh::str("tools/list");
      const bh_record *list[] = {&r};
      REQUIRE(telemetry->batch(telemetry->size != 0 ? plugin->self : nullptr, list, 1) == 1);
    }
  }
  const egress::testing::FakeHttp::Request &request(std::size_t i) {
    REQUIRE(host.run_until([&] { return http.requests.size() > i; }, 5000));
    return http.requests[i];
  }
  static std::size_t spans(const egress::testing::FakeHttp::Request &r) {
    rapidjson::Document body;
    body.Parse(r.body.data(), r.body.size());
    REQUIRE(body.IsObject());
    return body["resourceSpans"][0]["scopeSpans"][0]["spans"].Size();
  }
  // Runs all pending work.
  void settle() { host.run_for(30); }
  bool logged(const std::string &text) const {
    for (const auto &line : host.logs()) {
      if (line.text.find(text) != std::string::npos) return true;
    }
    return false;
  }
};

}  // namespace

TEST_CASE("records are sent in batches, one request at a time") {
  World w;
  w.record(3);
  CHECK(World::spans(w.request(0)) == 3);
  CHECK(w.http.requests[0].url == "https://otel.example:4318/v1/traces");
  w.record(2);
  w.settle();
  CHECK(w.http.requests.size() == 1);
  w.http.answer(0, 200, "{}");
  CHECK(World::spans(w.request(1)) == 2);
  w.http.answer(1, 200, "{}");
  w.settle();
  CHECK(w.http.requests.size() == 2);
}

TEST_CASE("events are needed for traces only, and are not counted as requests") {
  World traces;
  CHECK(traces.telemetry->needs(traces.plugin->self) == BH_TELEMETRY_EVENTS);
  World metrics(R"(,"signals":["metrics"],"metrics_ms":100)");
  CHECK(metrics.telemetry->needs(metrics.plugin->self) == 0);
  bh_record swap{};
  swap.size = sizeof swap;
  swap.kind = BH_RECORD_PLUGIN;
  swap.number = ++metrics.number;
  swap.detail = bh::str(R"({"plugin":"tools.mine","change":"swap"})");
  const bh_record *list[] = {&swap};
  REQUIRE(metrics.telemetry->batch(metrics.plugin->self, list, 1) == 1);
  metrics.record(2);
  CHECK(metrics.request(0).body.find(R"("count":"2")") != std::string::npos);
  metrics.http.answer(0, 200, "{}");
  metrics.settle();
}

TEST_CASE("after a temporary failure, the same batch is retried, and no span is lost") {
  World w(R"(,"signals":["traces"],"flush_ms":10,"backoff_max_ms":20)");
  w.record(2);
  w.request(0);
  SECTION("an error status") {
    w.http.answer(0, 503, "");
  }
  SECTION("no response") {
    w.http.end(0, "connection refused");
  }
  w.record(1);
  const auto again = w.request(1);
  CHECK(again.body == w.http.requests[0].body);
  CHECK(w.logged("spans are queued"));
  w.http.answer(1, 200, "{}");
  CHECK(World::spans(w.request(2)) == 1);
  w.http.answer(2, 200, "{}");
  w.settle();
  CHECK(w.logged("accepts spans again"));
  CHECK_FALSE(w.logged("dropped:"));
}

TEST_CASE("rejected batches are dropped and counted, but not retried") {
  World w;
  w.record(2);
  w.request(0);
  w.http.answer(0, 400, "");
  w.record(1);
  CHECK(World::spans(w.request(1)) == 1);
  CHECK(w.host.metric("dropped_spans") == 2);
  w.http.answer(1, 200, "{}");
  w.settle();
}

TEST_CASE("retries of a batch are limited in time") {
  World w(R"(,"signals":["traces"],"flush_ms":10,"backoff_max_ms":10,"retry_for_ms":0)");
  w.record(2);
  w.request(0);
  w.http.answer(0, 503, "");
  w.settle();
  CHECK(w.host.metric("dropped_spans") == 2);
  CHECK(w.http.requests.size() == 1);
}

TEST_CASE(
    "the queue is limited; additional spans are dropped and counted without delaying the host") {
  World w(R"(,"signals":["traces"],"flush_ms":10,"queue_spans":5,"batch_spans":2)");
  w.record(8);
  CHECK(w.host.metric("dropped_spans") == 3);
  CHECK(w.logged("spans are dropped"));
  CHECK(World::spans(w.request(0)) == 2);
  w.http.answer(0, 200, "{}");
  CHECK(World::spans(w.request(1)) == 2);
}

TEST_CASE("counters are reported periodically, even after a failed report") {
  World w(R"(,"signals":["metrics"],"metrics_ms":100)");
  w.record(3);
  CHECK(w.request(0).url == "https://otel.example:4318/v1/metrics");
  CHECK(w.http.requests[0].body.find(R"("count":"3")") != std::string::npos);
  w.http.end(0, "connection refused");
  w.record(1);
  CHECK(w.request(1).body.find(R"("count":"4")") != std::string::npos);
  w.http.answer(1, 200, "{}");
}
