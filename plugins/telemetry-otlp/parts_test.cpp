// Tests spans, metrics and the configuration.
#include <bulkhead/abi/ext/policy.h>
#include <bulkhead/cpp/basics.hpp>

#include <rapidjson/document.h>
#include <catch2/catch.hpp>

#include "telemetry-otlp/config.hpp"
#include "telemetry-otlp/exporter.hpp"
#include "telemetry-otlp/meters.hpp"
#include "telemetry-otlp/span.hpp"

using namespace otlp;

namespace {

bh_record record() {
  bh_record r{};
  r.size = sizeof r;
  r.outcome = BH_OUTCOME_OK;
  r.number = 42;
  r.session = 7;
  r.start_unix_ns = 1'700'000'000'000'000'001;
  r.duration_ns = 3'000'000;
  r.bytes_in = 10;
  r.bytes_out = 20;
  r.method = bh::str("tools/call");
  r.server = bh::str("files");
  r.name = bh::str("read");
  r.trace_id = bh::str("0af7651916cd43dd8448eb211c80319c");
  r.action = BH_VERDICT_ALLOW;
  r.claimed_name = bh::str("Claude Code");
  r.client_revision = 20251125;
  r.server_revision = 20260728;
  return r;
}

rapidjson::Document parsed(const std::string &text) {
  rapidjson::Document out;
  out.Parse(text.data(), text.size());
  INFO(text);
  REQUIRE(out.IsObject());
  return out;
}
std::string text_at(const rapidjson::Value &object, const char *name) {
  REQUIRE(object.HasMember(name));
  REQUIRE(object[name].IsString());
  return object[name].GetString();
}
// Returns the value of an attribute, or an empty string if it is missing.
std::string attribute(const rapidjson::Value &owner, const std::string &key) {
  for (const auto &each : owner["attributes"].GetArray()) {
    if (text_at(each, "key") != key) continue;
    const auto &value = each["value"];
    return value.MemberBegin()->value.GetString();
  }
  return {};
}

}  // namespace

TEST_CASE("a record becomes a span of the client's trace") {
  const auto span = parsed(span_json(record()));
  CHECK(text_at(span, "traceId") == "0af7651916cd43dd8448eb211c80319c");
  CHECK(text_at(span, "spanId").size() == 16);
  CHECK(text_at(span, "name") == "tools/call read");
  CHECK(span["kind"].GetInt() == 2);
  CHECK(text_at(span, "startTimeUnixNano") == "1700000000000000001");
  CHECK(text_at(span, "endTimeUnixNano") == "1700000000003000001");
  CHECK(span["status"]["code"].GetInt() == 1);
  CHECK(attribute(span, "mcp.method.name") == "tools/call");
  CHECK(attribute(span, "gen_ai.tool.name") == "read");
  CHECK(attribute(span, "bulkhead.server") == "files");
  CHECK(attribute(span, "bulkhead.outcome") == "ok");
  CHECK(attribute(span, "bulkhead.policy.action") == "allow");
  CHECK(attribute(span, "bulkhead.bytes_out") == "20");
  CHECK(attribute(span, "bulkhead.claimed_name") == "Claude Code");
  CHECK(attribute(span, "mcp.protocol.version") == "2025-11-25");
  CHECK(attribute(span, "bulkhead.server_protocol_version") == "2026-07-28");
  CHECK(attribute(span, "error.type").empty());
}

TEST_CASE("changes of plugins and policies become internal spans; other events become none") {
  bh_record r{};
  r.size = sizeof r;
  r.number = 7;
  r.start_unix_ns = 1'700'000'000'000'000'001;
  r.kind = BH_RECORD_PLUGIN;
  r.detail = bh::str(R"({"plugin":"tools.mine","change":"swap: one \"canary\" replaced by two"})");
  const auto mask = [](std::string_view text) {
    std::string out(text);
    if (const auto at = out.find("canary"); at != std::string::npos) out.replace(at, 6, "***");
    return out;
  };
  const auto plugin = parsed(span_json(r, mask));
  CHECK(text_at(plugin, "name") == "plugin change");
  CHECK(plugin["kind"].GetInt() == 1);
  CHECK(text_at(plugin, "startTimeUnixNano") == text_at(plugin, "endTimeUnixNano"));
  CHECK(plugin["status"]["code"].GetInt() == 1);
  CHECK(attribute(plugin, "bulkhead.plugin") == "tools.mine");
  CHECK(attribute(plugin, "bulkhead.plugin.change") == "swap: one \"***\" replaced by two");
  CHECK(plugin["attributes"].Size() == 2);

  r.kind = BH_RECORD_POLICY;
  r.detail = bh::str(R"({"generation":3,"rules":2,"digest":"ab","policies":"rules","changes":""})");
  const auto policy = parsed(span_json(r));
  CHECK(text_at(policy, "name") == "policy change");
  CHECK(attribute(policy, "bulkhead.policy.generation") == "3");
  CHECK(attribute(policy, "bulkhead.policy.digest") == "ab");
  CHECK(policy["attributes"].Size() == 4);

  for (const std::uint32_t kind : std::initializer_list<std::uint32_t>{
           BH_RECORD_INTENT, BH_RECORD_APPROVAL, BH_RECORD_NET, BH_RECORD_FS, BH_RECORD_SNAPSHOT,
           BH_RECORD_IDENTITY, 99}) {
    r.kind = kind;
    CHECK(span_json(r).empty());
  }
}

TEST_CASE("the same record produces the same span; different records produce different spans") {
  bh_record other = record();
  CHECK(span_json(record()) == span_json(other));
  other.number = 43;
  CHECK(text_at(parsed(span_json(record())), "spanId") !=
        text_at(parsed(span_json(other)), "spanId"));
}

TEST_CASE("the span of a rejected call names the rule; arguments and results are not exported") {
  bh_record r = record();
  r.outcome = BH_OUTCOME_REFUSED;
  r.action = BH_VERDICT_BLOCK;
  r.rule = bh::str("no-etc");
  r.error = bh::str("secret error");
  r.request = bh::str(R"({"arguments":"secret arguments"})");
  r.response = bh::str("secret response");
  r.reason = bh::str("secret reason");
  const std::string text = span_json(r);
  const auto span = parsed(text);
  CHECK(span["status"]["code"].GetInt() == 2);
  CHECK(attribute(span, "error.type") == "refused");
  CHECK(attribute(span, "bulkhead.policy.rule") == "no-etc");
  CHECK(attribute(span, "bulkhead.policy.action") == "block");
  CHECK(text.find("secret") == std::string::npos);
}

TEST_CASE("if the client sends no trace, each session becomes a trace") {
  bh_record r = record();
  r.trace_id = {};
  const std::string trace = text_at(parsed(span_json(r)), "traceId");
  CHECK(trace.size() == 32);
  r.number = 43;
  CHECK(text_at(parsed(span_json(r)), "traceId") == trace);
  r.session = 8;
  CHECK(text_at(parsed(span_json(r)), "traceId") != trace);
  for (const char *bad :
       {"00000000000000000000000000000000", "0AF7651916cd43dd8448eb211c80319c", "1"}) {
    r.trace_id = bh::str(bad);
    CHECK(text_at(parsed(span_json(r)), "traceId") != bad);
  }
}

TEST_CASE("untrusted text is masked before it is truncated") {
  bh_record r = record();
  const std::string name = std::string(max_text - 3, 'x') + "canary";
  r.name = bh::str(name);
  r.principal = bh::str("canary");
  r.process_name = bh::str("a canary here");
  r.claimed_name = bh::str("claims canary");
  const std::string text = span_json(r, [](std::string_view plain) {
    std::string out(plain);
    const std::size_t at = out.find("canary");
    return at == out.npos ? out : out.replace(at, 6, "***");
  });
  const auto span = parsed(text);
  CHECK(text.find("can") == std::string::npos);
  CHECK(attribute(span, "gen_ai.tool.name") == std::string(max_text - 3, 'x') + "***");
  CHECK(attribute(span, "bulkhead.process_name") == "a *** here");
  CHECK(attribute(span, "bulkhead.claimed_name") == "claims ***");
}

TEST_CASE("long names are truncated, and special characters are escaped") {
  bh_record r = record();
  const std::string name = std::string(max_text - 1, 'x') + "\xc3\xa4\"\n";
  r.name = bh::str(name);
  const auto span = parsed(span_json(r));
  CHECK(attribute(span, "gen_ai.tool.name") == std::string(max_text - 1, 'x'));
}

TEST_CASE("a request contains the first queued spans") {
  const std::deque<std::string> spans = {R"({"a":1})", R"({"b":2})", R"({"c":3})"};
  const auto body = parsed(traces_body("my gateway", spans, 2));
  const auto &resource = body["resourceSpans"][0];
  CHECK(attribute(resource["resource"], "service.name") == "my gateway");
  const auto &scope = resource["scopeSpans"][0];
  CHECK(text_at(scope["scope"], "name") == "bulkhead");
  CHECK(scope["spans"].Size() == 2);
  CHECK(scope["spans"][1]["b"].GetInt() == 2);
}

TEST_CASE("metrics are counted by method, server and outcome") {
  Meters meters;
  CHECK(meters.body("b", 1, 2).empty());
  bh_record r = record();
  meters.add(r);
  meters.add(r);
  r.outcome = BH_OUTCOME_ERROR;
  r.duration_ns = 60'000'000'000;
  meters.add(r);
  meters.drop(5);
  const auto body = parsed(meters.body("b", 1, 2));
  const auto &metrics = body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
  REQUIRE(metrics.Size() == 2);
  CHECK(text_at(metrics[0], "name") == "bulkhead.request.duration");
  const auto &histogram = metrics[0]["histogram"];
  CHECK(histogram["aggregationTemporality"].GetInt() == 2);
  const auto &points = histogram["dataPoints"];
  REQUIRE(points.Size() == 2);
  CHECK(text_at(points[0], "count") == "2");
  CHECK(points[0]["sum"].GetDouble() == Approx(0.006));
  CHECK(points[0]["bucketCounts"].Size() == Meters::bounds.size() + 1);
  CHECK(points[0]["explicitBounds"].Size() == Meters::bounds.size());
  CHECK(std::string(points[0]["bucketCounts"][2].GetString()) == "2");  // up to 5 ms
  CHECK(std::string(points[1]["bucketCounts"][Meters::bounds.size()].GetString()) == "1");
  CHECK(attribute(points[1], "bulkhead.outcome") == "error");
  CHECK(text_at(points[0], "startTimeUnixNano") == "1");
  CHECK(text_at(points[0], "timeUnixNano") == "2");
  CHECK(text_at(metrics[1], "name") == "bulkhead.telemetry.dropped_spans");
  CHECK(metrics[1]["sum"]["isMonotonic"].GetBool());
  CHECK(text_at(metrics[1]["sum"]["dataPoints"][0], "asInt") == "5");
}

TEST_CASE("the number of series is limited, regardless of client input") {
  Meters meters;
  for (std::size_t i = 0; i < 2 * Meters::max_series; ++i) {
    bh_record r = record();
    const std::string server = std::to_string(i);
    r.server = bh::str(server);
    meters.add(r);
  }
  CHECK(meters.series() <= Meters::max_series + 1);
  CHECK(meters.body("b", 1, 2).find("\"other\"") != std::string::npos);
}

TEST_CASE("traces and metrics are sent to paths of the configured URL") {
  Config c;
  REQUIRE(Config::read(R"({"url":"https://otel.example:4318/base/"})", &c).empty());
  CHECK(c.traces.url == "https://otel.example:4318/base/v1/traces");
  CHECK(c.metrics.url == "https://otel.example:4318/base/v1/metrics");
  CHECK(c.traces.timeout_ms == 10'000);
  REQUIRE(Config::read(R"({"url":"https://x","signals":["metrics"],"timeout_ms":50})", &c).empty());
  CHECK_FALSE(c.send_traces);
  CHECK(c.traces.timeout_ms == 50);
}

TEST_CASE("configuration errors name the key") {
  const auto wrong = [](const std::string &more) {
    Config c;
    return Config::read(R"({"url":"https://x")" + more + "}", &c);
  };
  CHECK(wrong(R"(,"colour":1)").starts_with("colour: "));
  CHECK(wrong(R"(,"signals":["logs"])").starts_with("signals: "));
  CHECK(wrong(R"(,"queue_spans":0)").starts_with("queue_spans: "));
  CHECK(wrong(R"(,"service_name":"")").starts_with("service_name: "));
  Config c;
  CHECK(Config::read(R"({"url":"https://x?token=1"})", &c).starts_with("url: "));
  CHECK(Config::read(R"({"url":"http://otel.example"})", &c).starts_with("url: "));
}

TEST_CASE("certain statuses require a retry") {
  for (const std::uint32_t status : {429u, 502u, 503u, 504u}) CHECK(retryable(status));
  for (const std::uint32_t status : {200u, 302u, 400u, 401u, 404u, 500u})
    CHECK_FALSE(retryable(status));
}
