// A gateway's counters in the Prometheus text format.
#pragma once

#include <string>

#include "service/service_protocol.hpp"

namespace bulkhead::program {

inline constexpr std::string_view metrics_type = "text/plain; version=0.0.4; charset=utf-8";

// Formats counters of the gateway as bulkhead_NAME_total, and counters of its plugins as
// bulkhead_plugin_NAME_total{plugin="ID"}. The gauges are the numbers of sessions, in-flight calls,
// calls pending approval, servers and compartments.
std::string metrics_text(const ServiceStatus &status);

}  // namespace bulkhead::program
