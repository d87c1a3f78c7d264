#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "egress-kit/endpoint.hpp"

namespace otlp {

struct Config {
  egress::Endpoint traces, metrics;  // the configured URL with /v1/traces or /v1/metrics
  bool send_traces = true, send_metrics = true;
  std::string service_name = "bulkhead";
  std::uint64_t queue_spans = 8'192;      // additional spans are dropped and counted
  std::uint64_t batch_spans = 512;        // maximum number of spans in one request
  std::uint64_t flush_ms = 1'000;         // how long a span waits for a batch to fill
  std::uint64_t metrics_ms = 15'000;      // interval between metrics reports
  std::uint64_t retry_for_ms = 300'000;   // a batch that fails for this long is dropped and counted
  std::uint64_t backoff_max_ms = 60'000;  // backoff limit without jitter; Retry-After may be longer

  // Reads the configuration. Returns an error that names the key, or an empty string on success.
  static std::string read(std::string_view json, Config *out);
};

}  // namespace otlp
