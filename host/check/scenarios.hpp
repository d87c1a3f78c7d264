// The trials of a plugin. Each runs in a child process of its own.
#pragma once

#include <span>

#include "check/subject.hpp"

namespace bulkhead::check {

struct Scenario {
  const char *extension;  // only for plugins that provide it; null: for all plugins
  void (*run)(Trial *trial, const Subject &subject);
};

// If one of these trials fails, the others would only repeat its violations.
void check_loading(Trial *trial, const Subject &subject);
void check_instance(Trial *trial, const Subject &subject);

std::span<const Scenario> life_scenarios() noexcept;
std::span<const Scenario> tools_scenarios() noexcept;
std::span<const Scenario> policy_scenarios() noexcept;
std::span<const Scenario> telemetry_scenarios() noexcept;
std::span<const Scenario> wire_scenarios() noexcept;  // connectors and transports

}  // namespace bulkhead::check
