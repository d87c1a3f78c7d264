#include "route/duplicate_checks.hpp"

#include <catch2/catch.hpp>
#include <map>

using namespace bulkhead;

namespace {

KeptText large(std::string_view more) {
  return kept(R"({"text":")" + std::string(300'000, 'x') + "\"" + std::string(more) + "}");
}

}  // namespace

TEST_CASE("duplicate members are found on another thread and reported on the reactor thread") {
  auto reactor = Reactor::create();
  REQUIRE(reactor.has_value());
  std::map<std::uint64_t, bool> found;
  DuplicateChecks checks(**reactor,
                         [&](std::uint64_t number, bool twins) { found[number] = twins; });
  for (const auto &[number, more] :
       {std::pair(1, R"(,"a":1,"b":2)"), std::pair(2, R"(,"a":1,"a":2)")}) {
    const KeptText text = large(more);
    REQUIRE(checks.begin(static_cast<std::uint64_t>(number), text, *text));
  }
  CHECK(found.empty());
  while (found.size() < 2) (*reactor)->poll(-1);
  CHECK_FALSE(found.at(1));
  CHECK(found.at(2));
}

TEST_CASE("results are dropped after the object has been destroyed") {
  auto reactor = Reactor::create();
  REQUIRE(reactor.has_value());
  int told = 0;
  {
    DuplicateChecks checks(**reactor, [&](std::uint64_t, bool) { ++told; });
    const KeptText text = large("");
    REQUIRE(checks.begin(1, text, *text));
  }
  while ((*reactor)->held(nullptr).blocking != 0) (*reactor)->poll(10);
  (*reactor)->poll(10);
  CHECK(told == 0);
}
