#include "route/evicted.hpp"

#include <catch2/catch.hpp>

using bulkhead::Evicted;

TEST_CASE("an evicted session is known until it would have been idle too long") {
  Evicted evicted(4);
  evicted.add("a", 100);
  CHECK(evicted.holds("a", 100, 50));
  CHECK(evicted.holds("a", 149, 50));
  CHECK_FALSE(evicted.holds("a", 150, 50));
  CHECK_FALSE(evicted.holds("b", 100, 50));
  evicted.forget("a");
  CHECK_FALSE(evicted.holds("a", 100, 50));
  evicted.add("", 100);
  CHECK(evicted.size() == 0);
}

TEST_CASE("of too many evicted sessions the earliest are forgotten") {
  Evicted evicted(3);
  for (const char *id : {"a", "b", "c"}) evicted.add(id, 1);
  // One that came back and was evicted again is a late one.
  evicted.forget("a");
  evicted.add("a", 2);
  CHECK(evicted.holds("a", 3, 10));
  CHECK(evicted.holds("b", 3, 10));
  evicted.add("d", 3);
  CHECK_FALSE(evicted.holds("b", 3, 10));
  CHECK(evicted.holds("a", 3, 10));
  for (int i = 0; i < 1000; ++i) {
    evicted.add("x" + std::to_string(i), 4);
    CHECK(evicted.size() <= 3);
  }
}
