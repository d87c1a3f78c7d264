#include "telemetry-otlp/meters.hpp"

#include <bulkhead/cpp/basics.hpp>
#include <bulkhead/cpp/record_names.hpp>
#include <bulkhead/cpp/text.hpp>

#include <algorithm>

#include "telemetry-otlp/span.hpp"
#include "telemetry-otlp/writer.hpp"

namespace otlp {
namespace {

constexpr int cumulative = 2;

struct Times {
  std::string start, now;
};

void put_times(Writer &out, const Times &times) {
  out.member("startTimeUnixNano", times.start);
  out.member("timeUnixNano", times.now);
}

void begin_metric(Writer &out, const char *name, const char *unit, const char *kind) {
  out.begin_object();
  out.member("name", name);
  out.member("unit", unit);
  out.key(kind).begin_object();
  out.member("aggregationTemporality", cumulative);
  out.key("dataPoints").begin_array();
}

void end_metric(Writer &out) {
  out.end_array();
  out.end_object();
  out.end_object();
}

}  // namespace

void Meters::add(const bh_record &record) {
  Key key(bh::cut_text(bh::view(record.method), max_text),
          bh::cut_text(bh::view(record.server), max_text), record.outcome);
  if (series_.size() >= max_series && !series_.contains(key))
    key = Key("other", "other", record.outcome);
  Series &series = series_[std::move(key)];
  const double seconds = static_cast<double>(record.duration_ns) / 1e9;
  ++series.count;
  series.seconds += seconds;
  const auto at = std::lower_bound(bounds.begin(), bounds.end(), seconds);
  ++series.buckets[static_cast<std::size_t>(at - bounds.begin())];
}

std::string Meters::body(std::string_view service_name, std::uint64_t start_unix_ns,
                         std::uint64_t now_unix_ns) const {
  if (series_.empty() && dropped_ == 0) return {};
  const Times times{std::to_string(start_unix_ns), std::to_string(now_unix_ns)};
  std::string text;
  Writer out(&text);
  out.begin_array();
  begin_metric(out, "bulkhead.request.duration", "s", "histogram");
  for (const auto &[key, series] : series_) {
    const auto &[method, server, outcome] = key;
    out.begin_object();
    out.key("attributes").begin_array();
    put_known(out, "mcp.method.name", method);
    put_known(out, "bulkhead.server", server);
    put_attribute(out, "bulkhead.outcome", bh::outcome_name(outcome));
    out.end_array();
    put_times(out, times);
    out.member("count", std::to_string(series.count));
    out.member("sum", series.seconds);
    out.key("bucketCounts").begin_array();
    for (const std::uint64_t n : series.buckets) out.value(std::to_string(n));
    out.end_array();
    out.member("explicitBounds", bounds);
    out.end_object();
  }
  end_metric(out);
  out.begin_object();
  out.member("name", "bulkhead.telemetry.dropped_spans");
  out.member("unit", "{span}");
  out.key("sum").begin_object();
  out.member("aggregationTemporality", cumulative);
  out.member("isMonotonic", true);
  out.key("dataPoints").begin_array();
  out.begin_object();
  put_times(out, times);
  out.member("asInt", std::to_string(dropped_));
  out.end_object();
  end_metric(out);
  out.end_array();
  return R"({"resourceMetrics":[{"resource":)" + resource_json(service_name) +
         R"(,"scopeMetrics":[{"scope":{"name":"bulkhead"},"metrics":)" + text + "}]}]}";
}

}  // namespace otlp
