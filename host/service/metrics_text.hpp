// Formats a gateway's counters in the Prometheus text format.
#pragma once

#include <string>

#include "service/service_protocol.hpp"

namespace bulkhead::program {

inline constexpr std::string_view metrics_type = "text/plain; version=0.0.4; charset=utf-8";

// The gateway's counters are named bulkhead_NAME_total, and a plugin's counters are named
// bulkhead_plugin_NAME_total{plugin="ID"}. There are gauges for sessions, in-flight calls, calls
// that wait for approval, servers and compartments.
std::string metrics_text(const ServiceStatus &status);

}  // namespace bulkhead::program
