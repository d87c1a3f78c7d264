// Tests lists that a policy filters item by item.
#include "route/filtered_lists.hpp"

#include <catch2/catch.hpp>

#include "route/list_world.hpp"

using namespace bulkhead;

namespace {

struct World : ListWorld {
  Session *session = nullptr;

  World() {
    gate.use(&policy_table, &policy);
    add("a", R"([{"name":"x"},{"name":"y"}])");
    session = &joined();
    loop->poll(0);
    again = 0;
  }
  View &view() { return *session->view; }
  std::string seen() { return names_of(filters.of(view(), *session)); }
};

bool has(const std::string &names, const char *name) {
  return names.find(name) != std::string::npos;
}

}  // namespace

TEST_CASE("a policy that decides immediately is asked once for each item and principal") {
  World w;
  CHECK(w.filters.any());
  CHECK(has(w.seen(), "a__x"));
  CHECK(w.policy.filtered == std::vector<std::string>{"x", "y"});
  w.seen();
  CHECK(w.policy.filtered.size() == 2);
  Session &other = w.joined();
  other.principal = "somebody else";
  w.policy.shows = BH_E_DENIED;
  CHECK(w.names_of(w.filters.of(w.view(), other)).empty());
  CHECK(w.policy.filtered.size() == 4);
  CHECK(has(w.seen(), "a__x"));
}

TEST_CASE("a list is available once all of its items are decided") {
  World w;
  w.policy.shows = BH_PENDING;
  CHECK(w.seen() == "pending");
  REQUIRE(w.policy.questions.size() == 2);
  w.filters.answered(w.policy.questions[1], true);
  w.filters.answered(w.policy.questions[1], false);  // a second decision is ignored
  w.filters.answered(w.policy.questions[0] & 0xffff, true);
  CHECK(w.ready == 0);
  CHECK(w.seen() == "pending");
  CHECK(w.policy.questions.size() == 2);
  w.filters.answered(w.policy.questions[0], false);
  CHECK(w.ready == 1);
  CHECK(has(w.seen(), "a__y"));
  CHECK_FALSE(has(w.seen(), "a__x"));
}

TEST_CASE(
    "items whose decisions time out are hidden, and the policy is asked again for the next list") {
  World w;
  w.policy.shows = BH_PENDING;
  w.profile.limits.policy_timeout_ms = 1;
  CHECK(w.seen() == "pending");
  w.filters.answered(w.policy.questions[0], true);
  CHECK(wait_for(*w.loop, [&] { return w.ready == 1; }));
  CHECK(w.unanswered == std::vector{std::pair(w.policy.questions[1], true)});
  CHECK(w.counters.policy_timeouts == 1);
  CHECK(w.seen() == "pending");
  CHECK(w.policy.questions.size() == 4);
}

TEST_CASE("pending decisions are abandoned when their list has changed or its view is destroyed") {
  World w;
  w.policy.shows = BH_PENDING;
  CHECK(w.seen() == "pending");
  const auto before = w.policy.questions;
  SECTION("changed") {
    w.filters.forget(w.view());
    w.loop->poll(0);
    CHECK(w.again == 1);
  }
  SECTION("destroyed") {
    w.filters.end(w.view());
    w.loop->poll(0);
    CHECK(w.again == 0);
  }
  CHECK(w.unanswered == std::vector{std::pair(before[0], false), std::pair(before[1], false)});
  w.filters.answered(before[0], true);
  w.filters.answered(before[1], true);
  CHECK(w.ready == 0);
  CHECK(w.seen() == "pending");  // a new round with new request numbers has started
  CHECK(w.policy.questions.size() == 4);
}

TEST_CASE("lists are not filtered if there are no pins and no policy filters lists") {
  World w;
  w.policy.needs = BH_POLICY_DECIDES;
  w.gate.use(&policy_table, &w.policy);
  CHECK_FALSE(w.filters.any());
}
