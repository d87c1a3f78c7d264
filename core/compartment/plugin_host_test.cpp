#include "compartment/plugin_host.hpp"

#include <catch2/catch.hpp>

#include "bulkhead/abi/ext/transport.h"
#include "plugin_base/testing_plugin.hpp"

using namespace bulkhead;
using testing::seen;

namespace {

struct Compartment {
  std::unique_ptr<Reactor> reactor = *Reactor::create();
  std::vector<std::string> lines;
  std::unique_ptr<PluginHost> host;

  Compartment(PluginKind kind, std::uint64_t message_bytes, const std::string &config = "{}",
              bool required = true) {
    Slice slice;
    slice.profile.limits.message_bytes = message_bytes;
    slice.profile.limits.drain_ms = slice.profile.limits.shutdown_grace_ms = 50;
    PluginUse use;
    use.id = use.plugin = "noting";
    use.config_json = config;
    use.required = required;
    slice.plugins = {{kind, use}};
    PluginRuntimeOptions options;
    options.static_plugins = {{"noting", bh_static_entry_NotingPlugin}};
    options.log = [this](std::int32_t, std::string_view component, std::string_view text) {
      lines.push_back(std::string(component) + ": " + std::string(text));
    };
    host = std::make_unique<PluginHost>(std::move(slice), *reactor, std::move(options));
  }
};

}  // namespace

TEST_CASE("compartment: two hosts in one process have separate tables") {
  seen().clear();
  Compartment one(PluginKind::connector, 1'000);
  Compartment two(PluginKind::connector, 2'000);
  REQUIRE(one.host->start().has_value());
  REQUIRE(two.host->start().has_value());
  const auto *first = seen()[0].table<bh_host_connector>(BH_EXT_HOST_CONNECTOR);
  const auto *second = seen()[1].table<bh_host_connector>(BH_EXT_HOST_CONNECTOR);
  REQUIRE(first != nullptr);
  REQUIRE(second != nullptr);
  CHECK(first != second);
  CHECK(first->limits->message_bytes == 1'000);
  CHECK(second->limits->message_bytes == 2'000);
  one.host.reset();
  CHECK(second->limits->message_bytes == 2'000);
}

TEST_CASE("compartment: no transport table is offered because a compartment has no clients") {
  seen().clear();
  Compartment compartment(PluginKind::tools, 1'000);
  REQUIRE(compartment.host->start().has_value());
  CHECK(seen()[0].table<void>(BH_EXT_HOST_TOOLS) != nullptr);
  CHECK(seen()[0].table<void>(BH_EXT_HOST_TRANSPORT) == nullptr);
}

TEST_CASE("compartment: a required plugin that fails is an error, unless it is a connector") {
  seen().clear();
  Compartment tools(PluginKind::tools, 1'000, testing::fail_config);
  CHECK_FALSE(tools.host->start().has_value());
  Compartment optional(PluginKind::tools, 1'000, testing::fail_config, false);
  CHECK(optional.host->start().has_value());
  REQUIRE(optional.lines.size() == 1);
  CHECK(optional.lines[0].ends_with("; continuing without it"));
  Compartment connector(PluginKind::connector, 1'000, testing::refuse_config);
  CHECK(connector.host->start().has_value());
  CHECK(connector.lines.size() == 1);
}

TEST_CASE("compartment: a plugin of the wrong type is an error") {
  seen().clear();
  Compartment compartment(PluginKind::policy, 1'000);
  const auto started = compartment.host->start();
  REQUIRE_FALSE(started.has_value());
  CHECK(started.error().text == "plugin \"noting\" of \"noting\": the plugin is not a policy");
}

TEST_CASE("compartment: plugins stop with the host") {
  seen().clear();
  {
    Compartment compartment(PluginKind::tools, 1'000);
    REQUIRE(compartment.host->start().has_value());
  }
  CHECK(seen()[0].steps.back() == "stop");
}

TEST_CASE("compartment: an HTTP service starts at the first request") {
  seen().clear();
  Compartment compartment(PluginKind::service, 1'000);
  REQUIRE(compartment.host->start().has_value());
  CHECK(seen().empty());
}
