#include "telemetry-otlp/meters.hpp"

#include <bulkhead/cpp/basics.hpp>
#include <bulkhead/cpp/record_names.hpp>

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
  put_text(out, "startTimeUnixNano", times.start);
  put_text(out, "timeUnixNano", times.now);
}

void begin_metric(Writer &out, const char *name, const char *unit, const char *kind) {
  out.StartObject();
  put_text(out, "name", name);
  put_text(out, "unit", unit);
  out.Key(kind);
  out.StartObject();
  out.Key("aggregationTemporality");
  out.Int(cumulative);
  out.Key("dataPoints");
  out.StartArray();
}

void end_metric(Writer &out) {
  out.EndArray();
  out.EndObject();
  out.EndObject();
}

}  // namespace

void Meters::add(const bh_record &record) {
  Key key(cut(bh::view(record.method), max_text), cut(bh::view(record.server), max_text),
          record.outcome);
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
  rapidjson::StringBuffer text;
  Writer out(text);
  out.StartArray();
  begin_metric(out, "bulkhead.request.duration", "s", "histogram");
  for (const auto &[key, series] : series_) {
    const auto &[method, server, outcome] = key;
    out.StartObject();
    out.Key("attributes");
    out.StartArray();
    put_known(out, "mcp.method.name", method);
    put_known(out, "bulkhead.server", server);
    put_attribute(out, "bulkhead.outcome", bh::outcome_name(outcome));
    out.EndArray();
    put_times(out, times);
    put_text(out, "count", std::to_string(series.count));
    out.Key("sum");
    out.Double(series.seconds);
    out.Key("bucketCounts");
    out.StartArray();
    for (const std::uint64_t n : series.buckets) out.String(std::to_string(n).c_str());
    out.EndArray();
    out.Key("explicitBounds");
    out.StartArray();
    for (const double bound : bounds) out.Double(bound);
    out.EndArray();
    out.EndObject();
  }
  end_metric(out);
  out.StartObject();
  put_text(out, "name", "bulkhead.telemetry.dropped_spans");
  put_text(out, "unit", "{span}");
  out.Key("sum");
  out.StartObject();
  out.Key("aggregationTemporality");
  out.Int(cumulative);
  out.Key("isMonotonic");
  out.Bool(true);
  out.Key("dataPoints");
  out.StartArray();
  out.StartObject();
  put_times(out, times);
  put_text(out, "asInt", std::to_string(dropped_));
  out.EndObject();
  end_metric(out);
  out.EndArray();
  return R"({"resourceMetrics":[{"resource":)" + resource_json(service_name) +
         R"(,"scopeMetrics":[{"scope":{"name":"bulkhead"},"metrics":)" +
         std::string(text.GetString(), text.GetSize()) + "}]}]}";
}

}  // namespace otlp
