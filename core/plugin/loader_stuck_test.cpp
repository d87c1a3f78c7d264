#include <catch2/catch.hpp>

#include "plugin/loader.hpp"

using Catch::Contains;

// The process must also exit after the test. The test's time limit verifies this.
TEST_CASE(
    "a plugin that hangs in a static constructor is reported, and prevents loading other plugins") {
  bulkhead::LoadOptions options;
  options.dirs = {TEST_PLUGINS};
  REQUIRE(bulkhead::Library::load("good", nullptr, options).has_value());
  options.init_timeout_ms = 50;
  auto hanging = bulkhead::Library::load("hangs-in-constructor", nullptr, options);
  REQUIRE_FALSE(hanging.has_value());
  CHECK(hanging.error().code == BH_E_TIMEOUT);
  CHECK_THAT(hanging.error().text,
             Contains("plugin hangs-in-constructor") &&
                 Contains("did not return from its static constructors within 50 ms"));
  auto next = bulkhead::Library::load("bigger", nullptr, options);
  REQUIRE_FALSE(next.has_value());
  CHECK(next.error().code == BH_E_UNAVAILABLE);
  CHECK_THAT(next.error().text, Contains("plugin bigger") && Contains("hangs-in-constructor"));
}
