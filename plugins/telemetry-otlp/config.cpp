#include "telemetry-otlp/config.hpp"

#include <rapidjson/document.h>

#include "egress-kit/config_values.hpp"

namespace otlp {
namespace {

using Value = rapidjson::Value;

using egress::text_of;

constexpr egress::Number<Config> numbers[] = {
    {"queue_spans", &Config::queue_spans, 1, 100'000},
    {"batch_spans", &Config::batch_spans, 1, 4'096},
    {"flush_ms", &Config::flush_ms, 10, 60'000},
    {"metrics_ms", &Config::metrics_ms, 100, 3'600'000},
    {"retry_for_ms", &Config::retry_for_ms, 0, 86'400'000},
    {"backoff_max_ms", &Config::backoff_max_ms, 10, 3'600'000},
};

constexpr egress::Word<Config> signals[] = {{"traces", &Config::send_traces},
                                            {"metrics", &Config::send_metrics}};

std::string read_key(std::string_view key, const Value &value, Config *out) {
  if (key == "signals") return egress::read_words(key, signals, value, out);
  if (key == "service_name") {
    if (!value.IsString() || value.GetStringLength() == 0 || value.GetStringLength() > 255) {
      return "service_name: must be a string of 1 to 255 bytes";
    }
    out->service_name = text_of(value);
    return {};
  }
  for (const auto &number : numbers) {
    if (key == number.key) return number.read(value, out);
  }
  if (egress::endpoint_key(key)) return {};
  return std::string(key.substr(0, 64)) + ": unknown key";
}

}  // namespace

std::string Config::read(std::string_view json, Config *out) {
  rapidjson::Document root;
  if (std::string bad = egress::read_object(json, &root, out, read_key); !bad.empty()) return bad;
  egress::Endpoint base;
  base.timeout_ms = 10'000;
  if (std::string bad = egress::read_endpoint(root, &base); !bad.empty()) return bad;
  if (base.url.find_first_of("?#") != std::string::npos) {
    return "url: must not have a query, since /v1/traces is appended";
  }
  while (base.url.ends_with('/')) base.url.pop_back();
  out->traces = out->metrics = base;
  out->traces.url += "/v1/traces";
  out->metrics.url += "/v1/metrics";
  return {};
}

}  // namespace otlp
