// Tests egress compartments: which plugins have one, and what it may access.
#include "supervisor/egress.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "supervisor/plan.hpp"

using namespace bulkhead;
using namespace bulkhead::program;

namespace {

SlicePrivileges allowed(std::string_view config) {
  SlicePrivileges may;
  allow_egress(config, &may);
  return may;
}

PluginUse use(std::string id, std::string plugin, std::string config) {
  PluginUse out;
  out.id = std::move(id);
  out.plugin = std::move(plugin);
  out.config_json = std::move(config);
  return out;
}

const Slice *find(const std::vector<Slice> &slices, std::string_view name) {
  const auto at = std::find_if(slices.begin(), slices.end(),
                               [&](const Slice &slice) { return slice.name == name; });
  return at == slices.end() ? nullptr : &*at;
}

}  // namespace

TEST_CASE("an egress plugin may connect to one port") {
  using Ports = std::vector<std::uint16_t>;
  CHECK(allowed(R"({"url":"https://pdp.example/v1"})").ports == Ports{443});
  CHECK(allowed(R"({"url":"https://pdp.example:8443/v1?x=:1"})").ports == Ports{8443});
  CHECK(allowed(R"({"url":"http://[::1]:8181/v1"})").ports == Ports{8181});
  CHECK(allowed(R"({"url":"http://[::1]/v1"})").ports == Ports{80});
  CHECK(allowed(R"({"url":"https://pdp.example"})").network);
  for (const char *nowhere :
       {R"({})", R"({"url":1})", R"({"url":"ftp://x"})", R"({"url":"https://x:99999/"})",
        R"({"url":"https://x:0/"})", R"({"url":"https://x:/"})"}) {
    INFO(nowhere);
    CHECK_FALSE(allowed(nowhere).network);
  }
}

TEST_CASE("an egress plugin with a Unix socket has one path and no network") {
  const SlicePrivileges may = allowed(R"({"url":"http://localhost/","socket":"/run/opa.sock"})");
  CHECK_FALSE(may.network);
  CHECK(may.ports.empty());
  CHECK(may.dial == std::vector<std::string>{"/run/opa.sock"});
}

TEST_CASE("an egress policy's compartment has the HTTP client and access to one server") {
  Profile profile;
  profile.policies = {use("rules", "policy-rules", "{}"),
                      use("opa", "policy-http",
                          R"({"url":"https://x:8443/","headers":{"authorization":"Bearer t"}})")};
  profile.services = {use("http", "http-client", "{}")};
  profile.telemetry = {use("mine", "my-telemetry", "{}")};
  profile.state_dir = "/nowhere";
  PlanFacts facts;
  facts.is_root = true;
  facts.fingerprint_key = random_key();
  profile.own_paths = profile.fixed_own_paths = {"/own"};
  profile.programs = profile.fixed_programs = {"/program"};
  const std::vector<Slice> slices = plan_compartments(profile, facts);
  // Only a compartment that starts servers needs the paths that are protected from them. Otherwise,
  // each change of them would be sent to all compartments.
  for (const Slice &slice : slices) {
    const std::size_t count = slice.privileges.exec ? 2 : 0;
    CHECK(slice.profile.own_paths.size() == count);
    CHECK(slice.profile.programs.size() == count);
    CHECK(slice.profile.fixed_own_paths.empty());
    CHECK(slice.profile.fixed_programs.empty());
  }
  const Slice *egress = find(slices, "egress.policy.opa");
  REQUIRE(egress != nullptr);
  CHECK(egress->privileges.ports == std::vector<std::uint16_t>{8443});
  CHECK_FALSE(egress->privileges.stores);
  CHECK_FALSE(egress->privileges.exec);
  CHECK(egress->privileges.uid != slices.front().privileges.uid);
  REQUIRE(egress->plugins.size() == 2);
  CHECK(egress->plugins[1].use.plugin == "http-client");
  CHECK(egress->definitions.empty());
  // The endpoint has neither the credential nor network access. It evaluates both policies in
  // order.
  const Slice &endpoint = slices.front();
  CHECK_FALSE(endpoint.privileges.network);
  REQUIRE(endpoint.profile.policies.size() == 2);
  CHECK(endpoint.profile.policies[0].id == "rules");
  CHECK(endpoint.profile.policies[1].config_json == "{}");
  CHECK(endpoint.remote.at("policies/opa").compartment == "egress.policy.opa");
  const Slice *mine = find(slices, "telemetry.mine");
  REQUIRE(mine != nullptr);
  CHECK(mine->privileges.stores);
  CHECK_FALSE(mine->privileges.network);
}

TEST_CASE("a third-party plugin cannot use the name of an egress compartment") {
  Profile profile;
  profile.tools = {use("egress.policy.opa", "my-tools", "{}")};
  const std::vector<Slice> slices = plan_compartments(profile, {});
  CHECK(find(slices, "egress.policy.opa") == nullptr);
  CHECK(find(slices, "plugin.egress.policy.opa") != nullptr);
}
