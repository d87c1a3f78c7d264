#include "route/recent_ids.hpp"

#include <catch2/catch.hpp>

using bulkhead::RecentIds;

TEST_CASE("an id is held for the requested age") {
  RecentIds ids(4);
  ids.add("a", 100);
  CHECK(ids.holds("a", 100, 50));
  CHECK(ids.holds("a", 149, 50));
  CHECK_FALSE(ids.holds("a", 150, 50));
  CHECK_FALSE(ids.holds("b", 100, 50));
  ids.forget("a");
  CHECK_FALSE(ids.holds("a", 100, 50));
  ids.add("", 100);
  CHECK(ids.size() == 0);
}

TEST_CASE("if there are too many ids, the oldest are removed") {
  RecentIds ids(3);
  for (const char *id : {"a", "b", "c"}) ids.add(id, 1);
  // An id that is removed and added again is the newest id.
  ids.forget("a");
  ids.add("a", 2);
  CHECK(ids.holds("a", 3, 10));
  CHECK(ids.holds("b", 3, 10));
  ids.add("d", 3);
  CHECK_FALSE(ids.holds("b", 3, 10));
  CHECK(ids.holds("a", 3, 10));
  for (int i = 0; i < 1000; ++i) {
    ids.add("x" + std::to_string(i), 4);
    CHECK(ids.size() <= 3);
  }
}
