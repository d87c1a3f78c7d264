#include "plugin_base/plugin_runtime.hpp"

#include <catch2/catch.hpp>

#include "bulkhead/abi/ext/draft/mask.h"
#include "bulkhead/abi/ext/draft/sign.h"
#include "bulkhead/abi/ext/draft/spawn.h"
#include "plugin_base/testing_plugin.hpp"

using namespace bulkhead;
using Catch::Contains;
using testing::seen;

namespace {

using Steps = std::vector<std::string>;

struct World {
  std::unique_ptr<Reactor> reactor = *Reactor::create();
  Profile profile;
  std::vector<std::string> lines;
  std::unique_ptr<PluginRuntime> runtime;
  std::vector<std::unique_ptr<PluginPart>> parts;

  explicit World(bool spawns = false) {
    seen().clear();
    PluginRuntimeOptions options;
    options.static_plugins = {{"noting", bh_static_entry_NotingPlugin}};
    options.spawns = spawns;
    options.log = [this](std::int32_t, std::string_view component, std::string_view text) {
      lines.push_back(std::string(component) + ": " + std::string(text));
    };
    options.find_table = [](const PluginPart &part, std::string_view id) -> const void * {
      static const int table = 0;
      return id == "test.granted/1" && part.granted("test") ? &table : nullptr;
    };
    runtime = std::make_unique<PluginRuntime>(*reactor, profile, std::move(options));
  }
  PluginPart &part(const std::string &id, const std::string &config = "{}") {
    PluginPart &made = *parts.emplace_back(std::make_unique<PluginPart>());
    made.use.id = id;
    made.use.plugin = "noting";
    made.use.config_json = config;
    return made;
  }
  PluginPart &running(const std::string &id) {
    PluginPart &made = part(id);
    REQUIRE(runtime->load(made).has_value());
    REQUIRE(PluginRuntime::start(made).has_value());
    return made;
  }
};

bool has(std::size_t instance, const char *id) {
  return seen()[instance].table<void>(id) != nullptr;
}

}  // namespace

TEST_CASE("runtime: a part is loaded, started and stopped once each") {
  World world;
  PluginPart &part = world.part("a");
  CHECK_FALSE(part.runs());
  REQUIRE(world.runtime->load(part).has_value());
  CHECK(seen()[0].steps == Steps{"create", "configure"});
  REQUIRE(PluginRuntime::start(part).has_value());
  CHECK(part.runs());
  PluginRuntime::stop(part);
  PluginRuntime::stop(part);
  CHECK(seen()[0].steps == Steps{"create", "configure", "start", "stop"});
}

TEST_CASE("runtime: parts stop in reverse order; a part that was not started is not stopped") {
  World world;
  world.running("a");
  REQUIRE(world.runtime->load(world.part("b")).has_value());
  world.part("c");  // not loaded
  world.running("d");
  PluginRuntime::stop_all(world.parts);
  CHECK(seen()[0].steps.back() == "stop");
  CHECK(seen()[1].steps.back() == "configure");
  CHECK(seen()[2].steps.back() == "stop");
}

TEST_CASE("runtime: the reason for a part's failure is stored in the part") {
  World world;
  SECTION("no such plugin") {
    PluginPart &part = world.part("a");
    part.use.plugin = "missing";
    const auto loaded = world.runtime->load(part);
    REQUIRE_FALSE(loaded.has_value());
    CHECK(part.failure == loaded.error().text);
    CHECK_THAT(part.failure, Contains("missing"));
    CHECK(part.instance == nullptr);
    CHECK(PluginRuntime::start(part).has_value());  // nothing to start
    CHECK_FALSE(part.runs());
  }
  SECTION("a refused configuration") {
    PluginPart &part = world.part("a", testing::refuse_config);
    CHECK_FALSE(world.runtime->load(part).has_value());
    CHECK_THAT(part.failure, Contains("refused by the test"));
    CHECK(part.instance == nullptr);
  }
  SECTION("a failed start") {
    PluginPart &part = world.part("a", testing::fail_config);
    REQUIRE(world.runtime->load(part).has_value());
    CHECK_FALSE(PluginRuntime::start(part).has_value());
    CHECK_THAT(part.failure, Contains("failed by the test"));
    CHECK_FALSE(part.runs());
    PluginRuntime::stop(part);
    CHECK(seen()[0].steps.back() == "start");
  }
}

TEST_CASE("runtime: signatures and masks are offered only to parts that keep records") {
  World world;
  world.runtime->set_prints(std::make_shared<const SecretPrints>());
  PluginPart &records = world.part("records");
  records.keeps_records = true;
  REQUIRE(world.runtime->load(records).has_value());
  REQUIRE(world.runtime->load(world.part("other")).has_value());
  CHECK(has(0, BH_EXT_HOST_SIGN));
  CHECK(has(0, BH_EXT_HOST_MASK));
  CHECK_FALSE(has(1, BH_EXT_HOST_SIGN));
  CHECK_FALSE(has(1, BH_EXT_HOST_MASK));
}

TEST_CASE(
    "runtime: only parts that may start child processes get the spawner, if the host has one") {
  for (const bool spawns : {true, false}) {
    World world(spawns);
    PluginPart &connector = world.part("connector");
    connector.starts_children = true;
    REQUIRE(world.runtime->load(connector).has_value());
    REQUIRE(world.runtime->load(world.part("other")).has_value());
    CHECK(has(0, BH_EXT_HOST_SPAWN) == spawns);
    CHECK_FALSE(has(1, BH_EXT_HOST_SPAWN));
  }
}

TEST_CASE("runtime: each part gets the tables that the host selects for it") {
  World world;
  PluginPart &granted = world.part("a");
  granted.use.grants = {"test"};
  REQUIRE(world.runtime->load(granted).has_value());
  REQUIRE(world.runtime->load(world.part("b")).has_value());
  CHECK(has(0, "test.granted/1"));
  CHECK_FALSE(has(1, "test.granted/1"));
}

TEST_CASE("runtime: the HTTP service is the first running part that provides one") {
  World world;
  void *self = nullptr;
  CHECK(find_http_service(world.parts, &self) == nullptr);
  PluginPart &failed = world.part("a", testing::fail_config);
  REQUIRE(world.runtime->load(failed).has_value());
  CHECK_FALSE(PluginRuntime::start(failed).has_value());
  CHECK(find_http_service(world.parts, &self) == nullptr);
  PluginPart &second = world.running("b");
  world.running("c");
  CHECK(find_http_service(world.parts, &self) != nullptr);
  CHECK(self == second.instance->self());
}
