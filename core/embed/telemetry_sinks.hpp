// Registers the host's telemetry plugins to receive the router's records.
#pragma once

#include <string>

#include "embed/host_core.hpp"
#include "embed/part.hpp"

namespace bulkhead {

class TelemetrySinks final : public link::TelemetryEvents {
 public:
  // `parts` contains the telemetry plugins.
  TelemetrySinks(HostCore &core, const Parts &parts) : core_(core), parts_(parts) {}

  // Connects the started plugins to the recorder. Called once.
  void use();
  // Flushes the recorder. Returns true if all records have been accepted or there is no receiver.
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
