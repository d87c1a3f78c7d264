#include <catch2/catch.hpp>

#include "bulkhead/abi/ext/draft/control.h"
#include "embed/host_impl.hpp"
#include "plugin_base/testing_plugin.hpp"

using namespace bulkhead;
using testing::seen;

namespace {

std::unique_ptr<Host> make_host(const std::vector<std::string> &grants,
                                std::uint64_t message_bytes) {
  Profile profile;
  profile.limits.message_bytes = message_bytes;
  profile.limits.shutdown_grace_ms = 50;
  PluginUse use;
  use.id = use.plugin = "noting";
  use.config_json = "{}";
  use.grants = grants;
  profile.tools = {use};
  HostOptions options;
  options.static_plugins = {{"noting", bh_static_entry_NotingPlugin}};
  auto host = Host::create(std::move(profile), std::move(options));
  REQUIRE(host.has_value());
  REQUIRE((*host)->start().has_value());
  return std::move(*host);
}

}  // namespace

TEST_CASE("hosts: two hosts in one process share no tables or grants") {
  seen().clear();
  const auto granted = make_host({"control"}, 1'000'000);
  auto plain = make_host({}, 2'000'000);
  REQUIRE(seen().size() == 2);
  const testing::Seen &first = seen()[0];
  const testing::Seen &second = seen()[1];
  const auto *control = first.table<bh_host_control>(BH_EXT_HOST_CONTROL);
  CHECK(control != nullptr);
  CHECK(second.table<bh_host_control>(BH_EXT_HOST_CONTROL) == nullptr);
  const auto *one = first.table<bh_host_connector>(BH_EXT_HOST_CONNECTOR);
  const auto *two = second.table<bh_host_connector>(BH_EXT_HOST_CONNECTOR);
  REQUIRE(one != nullptr);
  REQUIRE(two != nullptr);
  CHECK(one != two);
  CHECK(one->limits->message_bytes == 1'000'000);
  CHECK(two->limits->message_bytes == 2'000'000);
  // Destroying one host does not invalidate the tables of the other host.
  plain.reset();
  CHECK(one->limits->message_bytes == 1'000'000);
  CHECK(first.table<bh_host_control>(BH_EXT_HOST_CONTROL) == control);
}
