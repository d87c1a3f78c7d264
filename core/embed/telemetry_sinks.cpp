#include "embed/telemetry_sinks.hpp"

#include "route/recorder.hpp"

namespace bulkhead {

void TelemetrySinks::use() {
  Recorder &recorder = core_.route().records.recorder;
  for (const auto &part : parts_) {
    if (link::TelemetryClientStub *stub = part->telemetry_stub.get()) {
      stub->set_earlier_below(recorder.earlier_below());
      recorder.add_sink(&link::TelemetryClientStub::table(), stub, true);
      continue;
    }
    if (!part->runs()) continue;
    const auto *telemetry = part->instance->ext(BH_EXT_TELEMETRY, &bh_telemetry::batch);
    if (telemetry != nullptr) recorder.add_sink(telemetry, part->instance->self());
  }
  const auto &identity = core_.profile.identity;
  recorder.identify(identity.profile, identity.user);
}

bool TelemetrySinks::idle() {
  core_.route().records.recorder.flush();
  for (const auto &part : parts_) {
    if (part->telemetry_stub != nullptr && !part->telemetry_stub->idle()) return false;
  }
  return true;
}

void TelemetrySinks::telemetry_taken() {
  Recorder &recorder = core_.route().records.recorder;
  for (const auto &part : parts_) {
    const link::TelemetryClientStub *stub = part->telemetry_stub.get();
    if (stub != nullptr) recorder.set_acknowledged(stub, stub->acknowledged_below());
  }
  recorder.flush();
  core_.route().records.committed();
}
void TelemetrySinks::telemetry_committed(const link::TelemetryClientStub &stub,
                                         std::uint64_t below) {
  core_.route().records.recorder.set_committed(&stub, below);
  core_.route().records.committed();
}

}  // namespace bulkhead
