// A policy that does not return is noticed, and one that does is not.
#include "embed/policy_watch.hpp"

#include <catch2/catch.hpp>
#include <future>

using namespace bulkhead;

TEST_CASE("a question that is not over is reported with its policy") {
  std::promise<std::string> reported;
  auto report = reported.get_future();
  PolicyWatch watch(20, [&](std::string_view policy, std::uint64_t limit_ms) {
    reported.set_value(std::string(policy) + " " + std::to_string(limit_ms));
  });
  const std::string name = "slow";
  const PolicyWatch::Question question(&watch, &name);
  CHECK(report.get() == "slow 20");
}

TEST_CASE("only one question that goes on for all of the looks counts") {
  PolicyWatch::Looks looks;
  for (int i = 0; i < 100; ++i) CHECK_FALSE(looks.hangs(0));  // nobody was asked
  for (std::uint64_t steps = 1; steps < 100; ++steps) CHECK_FALSE(looks.hangs(steps));
  for (int i = 0; i < 100; ++i) CHECK_FALSE(looks.hangs(100));  // between questions
  for (int i = 0; i < PolicyWatch::Looks::most; ++i) CHECK_FALSE(looks.hangs(101));
  for (int i = 0; i < PolicyWatch::Looks::most; ++i) CHECK_FALSE(looks.hangs(103));  // another one
  CHECK(looks.hangs(103));
}
