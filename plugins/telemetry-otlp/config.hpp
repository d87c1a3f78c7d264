// What a profile says to telemetry-otlp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "egress-kit/endpoint.hpp"

namespace otlp {

struct Config {
  egress::Endpoint traces, metrics;  // the URL with /v1/traces and /v1/metrics behind it
  bool send_traces = true, send_metrics = true;
  std::string service_name = "bulkhead";
  std::uint64_t queue_spans = 8'192;      // that wait; more are dropped and counted
  std::uint64_t batch_spans = 512;        // the most in one request
  std::uint64_t flush_ms = 1'000;         // how long a span waits for others
  std::uint64_t metrics_ms = 15'000;      // between two reports
  std::uint64_t retry_for_ms = 300'000;   // then a batch is dropped and counted
  std::uint64_t backoff_max_ms = 60'000;  // the longest pause between two attempts

  // What is wrong, with the key's name; empty: nothing.
  static std::string read(std::string_view json, Config *out);
};

}  // namespace otlp
