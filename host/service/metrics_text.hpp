// Formats the counters of a gateway in the Prometheus text format.
#pragma once

#include <string>

#include "service/service_protocol.hpp"

namespace bulkhead::program {

inline constexpr std::string_view metrics_type = "text/plain; version=0.0.4; charset=utf-8";

// Counters of the gateway become bulkhead_NAME_total, and counters of a plugin become
// bulkhead_plugin_NAME_total{plugin="ID"}. There are gauges for sessions, in-flight calls, calls
// that wait for approval, servers and compartments.
std::string metrics_text(const ServiceStatus &status);

}  // namespace bulkhead::program
