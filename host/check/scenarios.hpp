// The trials of a plugin. Each runs in a child process of its own.
#pragma once

#include <array>
#include <span>

#include "check/subject.hpp"

namespace bulkhead::check {

struct Scenario {
  const char *extension;  // only for plugins that provide it; null: for all plugins
  void (*run)(Trial *trial, const Subject &subject);
  // Not run if one of these rules is violated, whose violations it would only repeat. The value
  // Rule{} is not a rule.
  std::array<Rule, 3> unless{};
};

// If one of these trials fails, the others would only repeat its violations.
void check_loading(Trial *trial, const Subject &subject);
void check_instance(Trial *trial, const Subject &subject);

std::span<const Scenario> life_scenarios() noexcept;
std::span<const Scenario> tools_scenarios() noexcept;
std::span<const Scenario> content_scenarios() noexcept;  // resources and prompts of tools plugins
std::span<const Scenario> policy_scenarios() noexcept;
std::span<const Scenario> telemetry_scenarios() noexcept;
std::span<const Scenario> wire_scenarios() noexcept;      // connectors and transports
std::span<const Scenario> shutdown_scenarios() noexcept;  // while a plugin works; several threads

}  // namespace bulkhead::check
