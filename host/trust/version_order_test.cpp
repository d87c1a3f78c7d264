// Tests the order of versions.
#include "trust/version_order.hpp"

#include <catch2/catch.hpp>
#include <compare>
#include <string>
#include <vector>

using namespace bulkhead::program;

TEST_CASE("versions are ordered by their numbers, and a pre-release precedes its release") {
  const std::vector<std::string> ascending = {"",
                                              "0.0.1",
                                              "0.1",
                                              "0.9.9",
                                              "1.0.0-alpha",
                                              "1.0.0-alpha.1",
                                              "1.0.0-beta",
                                              "1.0.0-rc.2",
                                              "1.0.0-rc.10",
                                              "1.0",
                                              "1.0.1",
                                              "1.2",
                                              "1.10",
                                              "2",
                                              "10.0.0",
                                              "99999999999999999999.0"};
  for (std::size_t i = 0; i < ascending.size(); ++i) {
    for (std::size_t j = 0; j < ascending.size(); ++j) {
      INFO(ascending[i] << " and " << ascending[j]);
      const auto order = compare_versions(ascending[i], ascending[j]);
      CHECK((order < 0) == (i < j));
      CHECK((order > 0) == (i > j));
    }
  }
}

TEST_CASE("missing numbers are 0, and build metadata is ignored") {
  for (const char *same : {"1", "1.0", "1.0.0", "01.0", "1.0.0+build.7", "1+2"}) {
    INFO(same);
    CHECK(std::is_eq(compare_versions(same, "1.0.0")));
  }
}
