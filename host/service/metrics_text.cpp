#include "service/metrics_text.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace bulkhead::program {
namespace {

std::string label(std::string_view name, std::string_view value) {
  std::string out(name);
  out += "=\"";
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + "\"";
}

// Replaces dots, which metric names cannot contain.
std::string plain(std::string_view name) {
  std::string out(name);
  std::replace(out.begin(), out.end(), '.', '_');
  return out;
}

class Metrics {
 public:
  void add(const std::string &name, const char *type, std::string labels, std::uint64_t value) {
    auto &metric = metrics_[name];
    metric.type = type;
    metric.samples.emplace_back(std::move(labels), value);
  }
  // Writes one TYPE line for each metric, followed by its samples.
  std::string text() const {
    std::string out;
    for (const auto &[name, metric] : metrics_) {
      out += "# TYPE " + name + " " + metric.type + "\n";
      for (const auto &[labels, value] : metric.samples) {
        out +=
            name + (labels.empty() ? "" : "{" + labels + "}") + " " + std::to_string(value) + "\n";
      }
    }
    return out;
  }

 private:
  struct Metric {
    const char *type = "";
    std::vector<std::pair<std::string, std::uint64_t>> samples;
  };
  std::map<std::string, Metric> metrics_;
};

}  // namespace

std::string metrics_text(const ServiceStatus &status) {
  Metrics metrics;
  metrics.add("bulkhead_sessions", "gauge", "", status.host.sessions);
  metrics.add("bulkhead_requests_in_flight", "gauge", "", status.host.in_flight);
  metrics.add("bulkhead_uptime_seconds", "gauge", "", status.process.uptime_ms / 1'000);
  for (const auto &[name, value] : status.host.counters) {
    // A counter named "ID.NAME" belongs to the plugin with this ID. Plugin IDs may contain dots, so
    // the longest matching ID is used.
    std::string_view owner;
    for (const PluginStatus &plugin : status.host.plugins) {
      const bool fits = name.size() > plugin.id.size() && name.starts_with(plugin.id) &&
                        name[plugin.id.size()] == '.';
      if (fits && plugin.id.size() > owner.size()) owner = plugin.id;
    }
    if (name == "approvals_waiting") {  // a current value, not a total
      metrics.add("bulkhead_" + plain(name), "gauge", "", value);
    } else if (owner.empty()) {
      metrics.add("bulkhead_" + plain(name) + "_total", "counter", "", value);
    } else {
      metrics.add("bulkhead_plugin_" + plain(name.substr(owner.size() + 1)) + "_total", "counter",
                  label("plugin", owner), value);
    }
  }
  for (const ServerStatus &server : status.host.servers) {
    const std::string of = label("server", server.name);
    metrics.add("bulkhead_server_ready", "gauge", of, server.state == ServerState::ready ? 1 : 0);
    metrics.add("bulkhead_server_tools", "gauge", of, server.tools);
    metrics.add("bulkhead_server_in_flight", "gauge", of, server.in_flight);
    metrics.add("bulkhead_server_restarts_total", "counter", of, server.restarts);
  }
  // If a compartment has two processes, only the first is shown, because the second is draining.
  std::set<std::string> seen;
  for (const CompartmentStatus &one : status.process.compartments) {
    if (!seen.insert(one.name).second) continue;
    const std::string of = label("compartment", one.name);
    metrics.add("bulkhead_compartment_running", "gauge", of, one.state == "running" ? 1 : 0);
    metrics.add("bulkhead_compartment_memory_bytes", "gauge", of, one.memory_bytes);
    metrics.add("bulkhead_compartment_restarts_total", "counter", of, one.restarts);
  }
  return metrics.text();
}

}  // namespace bulkhead::program
