// Connects the telemetry plugins of the host to the router's recorder.
#pragma once

#include <string>

#include "embed/host_core.hpp"
#include "embed/part.hpp"

namespace bulkhead {

class TelemetrySinks final : public link::TelemetryEvents {
 public:
  TelemetrySinks(HostCore &core, const Parts &parts) : core_(core), parts_(parts) {}

  // Connects the plugins that have started and those in compartments. Must be called once.
  void use();
  // Flushes the recorder. Returns true if the connected plugins in compartments have acknowledged
  // all records.
  bool idle();

 private:
  void telemetry_taken() override;
  void telemetry_committed(const link::TelemetryClientStub &stub, std::uint64_t below) override;
  void process_unhealthy(const std::string &compartment) override {
    core_.report_unhealthy(compartment);
  }

  HostCore &core_;
  const Parts &parts_;
};

}  // namespace bulkhead
