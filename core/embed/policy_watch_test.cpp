// Tests that a hanging policy is detected and reported, and that other policies are not.
#include "embed/policy_watch.hpp"

#include <catch2/catch.hpp>
#include <future>

using namespace bulkhead;

TEST_CASE("a policy whose request does not return is reported by name") {
  std::promise<std::string> reported;
  auto report = reported.get_future();
  PolicyWatch watch(20, [&](std::string_view policy, std::uint64_t limit_ms) {
    reported.set_value(std::string(policy) + " " + std::to_string(limit_ms));
  });
  const std::string name = "slow";
  const PolicyWatch::Question question(&watch, &name);
  CHECK(report.get() == "slow 20");
}

TEST_CASE("a request that is in progress at all checks is a hang") {
  PolicyWatch::Looks looks;
  for (int i = 0; i < 100; ++i) CHECK_FALSE(looks.hangs(0));  // no request in progress
  for (std::uint64_t steps = 1; steps < 100; ++steps) CHECK_FALSE(looks.hangs(steps));
  for (int i = 0; i < 100; ++i) CHECK_FALSE(looks.hangs(100));  // no request in progress
  for (int i = 0; i < PolicyWatch::Looks::most; ++i) CHECK_FALSE(looks.hangs(101));
  // another request
  for (int i = 0; i < PolicyWatch::Looks::most; ++i) CHECK_FALSE(looks.hangs(103));
  CHECK(looks.hangs(103));
}
