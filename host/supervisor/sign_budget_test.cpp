#include "supervisor/sign_budget.hpp"

#include <catch2/catch.hpp>

using bulkhead::program::SignBudget;

namespace {

constexpr std::uint64_t second = 1'000'000'000;

std::uint64_t all_at(SignBudget *budget, std::uint64_t now_ns) {
  std::uint64_t n = 0;
  while (n < 10 * SignBudget::burst && budget->consume(now_ns)) ++n;
  return n;
}

}  // namespace

TEST_CASE("after a burst, signatures are limited to a rate") {
  const std::uint64_t start = 77 * second;
  SignBudget budget(start);
  CHECK(all_at(&budget, start) == SignBudget::burst);
  CHECK(all_at(&budget, start) == 0);
  CHECK(all_at(&budget, start + second) == SignBudget::per_second);
  // The elapsed time is counted exactly once, even if requests are frequent.
  std::uint64_t n = 0;
  for (std::uint64_t ns = 0; ns < 10 * second; ns += second / 1000) {
    n += budget.consume(start + second + ns) ? 1 : 0;
  }
  CHECK(n == 10 * SignBudget::per_second - 1);
}

TEST_CASE("unused signatures accumulate only up to the burst") {
  SignBudget budget(0);
  CHECK(all_at(&budget, 3600 * second) == SignBudget::burst);
}
