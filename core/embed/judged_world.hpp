// Runs a gateway inside the test with the fake policy and telemetry plugins.
#pragma once

#include <catch2/catch.hpp>
#include <string>

#include "embed/fake_policy.hpp"
#include "embed/fake_world.hpp"
#include "embed/host_impl.hpp"

namespace bulkhead {

inline PluginUse use(const std::string &plugin) {
  PluginUse out;
  out.id = out.plugin = plugin;
  out.config_json = "{}";
  return out;
}

struct JudgedWorld : World {
  FakeJudge &judge = FakeJudge::get();

  JudgedWorld() {
    judge = FakeJudge{};
    profile.policies = {use("fake-policy")};
    profile.telemetry = {use("fake-telemetry")};
  }
  explicit JudgedWorld(std::uint32_t policy_needs) : JudgedWorld() { judge.needs = policy_needs; }

  void start(HostOptions options = {}) {
    options.static_plugins = {{"fake-connector", bh_static_entry_FakeConnector},
                              {"fake-policy", bh_static_entry_FakePolicy},
                              {"fake-telemetry", bh_static_entry_FakeTelemetry}};
    auto created = Host::create(profile, std::move(options));
    REQUIRE(created.has_value());
    host = std::move(*created);
    REQUIRE(host->start().has_value());
    REQUIRE(host->run_until([&] { return host->settled(); }, 20'000));
  }
};

}  // namespace bulkhead
