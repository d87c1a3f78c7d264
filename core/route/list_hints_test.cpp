// Tests the caching hints of lists: parsing, merging, and the age of a list.
#include "route/list_hints.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

using namespace bulkhead;

namespace {

constexpr std::uint64_t ms = 1'000'000;

ListHints hints_of(const std::string &members) {
  const std::string message = R"({"jsonrpc":"2.0","id":1,"result":{"tools":[])" + members + "}}";
  mcp::Scan scan;
  mcp::ScanError error;
  REQUIRE(mcp::scan(message, &scan, &error));
  return ListHints::of(scan, message);
}

}  // namespace

TEST_CASE("hints of a list result; invalid values forbid caching") {
  CHECK(hints_of("").ttl_ms == 0);
  CHECK_FALSE(hints_of("").is_public);
  const ListHints both = hints_of(R"(, "ttlMs" : 5000, "cacheScope" : "public" )");
  CHECK(both.ttl_ms == 5000);
  CHECK(both.is_public);
  for (const auto &[value, ttl] : std::vector<std::pair<std::string, std::uint64_t>>{
           {"0", 0},
           {"1", 1},
           {"-5", 0},
           {"1.5", 0},
           {"1e3", 0},
           {"\"5\"", 0},
           {"null", 0},
           {"86400001", ListHints::max_ttl_ms},
           {"99999999999999999999999999", ListHints::max_ttl_ms}}) {
    INFO(value);
    CHECK(hints_of(",\"ttlMs\":" + value).ttl_ms == ttl);
  }
  for (const char *scope : {R"("private")", R"("PUBLIC")", "true", "null", R"(["public"])"}) {
    INFO(scope);
    CHECK_FALSE(hints_of(std::string(",\"cacheScope\":") + scope).is_public);
  }
}

TEST_CASE("a merged list has the shortest time, and is public only if all of its lists are") {
  const ListHints merged = ListHints{500, true}.with({300, true});
  CHECK(merged.ttl_ms == 300);
  CHECK(merged.is_public);
  CHECK_FALSE(ListHints{500, true}.with({900, false}).is_public);
  CHECK(ListHints{500, true}.with({900, false}).ttl_ms == 500);
}

TEST_CASE("the time of a list runs out, unless the server reports changes") {
  ListAge age;
  age.received({5'000, true}, 100 * ms);
  CHECK(age.hints(false, 100 * ms).ttl_ms == 5'000);
  CHECK(age.hints(false, 1'100 * ms).ttl_ms == 4'000);
  CHECK(age.hints(false, 1'100 * ms).is_public);
  CHECK(age.hints(false, 5'100 * ms).ttl_ms == 0);
  CHECK(age.hints(false, 9'000 * ms).ttl_ms == 0);
  CHECK(age.hints(true, 9'000 * ms).ttl_ms == 5'000);
  CHECK(age.hints(false, 50 * ms).ttl_ms == 5'000);  // a request that arrived before the list
}

TEST_CASE("a list is requested again when its time is over, but not more often than the limit") {
  ListAge age;
  CHECK_FALSE(age.needs_refresh(false, 1'000'000 * ms));  // the server has no such list
  age.received({5'000, false}, 100 * ms);
  CHECK_FALSE(age.needs_refresh(false, 5'099 * ms));
  CHECK(age.needs_refresh(false, 5'100 * ms));
  age.received({0, false}, 6'000 * ms);
  CHECK_FALSE(age.needs_refresh(false, (5'999 + ListAge::min_refresh_ms) * ms));
  CHECK(age.needs_refresh(false, (6'000 + ListAge::min_refresh_ms) * ms));
}

TEST_CASE("a list that could not be read is requested again, even if its changes are reported") {
  ListAge age;
  CHECK_FALSE(age.known());
  age.received({5'000, true}, 100 * ms);
  CHECK(age.known());
  CHECK_FALSE(age.needs_refresh(true, 9'000 * ms));
  age.failed(9'000 * ms);
  CHECK(age.hints(true, 9'000 * ms).ttl_ms == 0);
  CHECK_FALSE(age.hints(true, 9'000 * ms).is_public);
  CHECK_FALSE(age.needs_refresh(true, (8'999 + ListAge::min_refresh_ms) * ms));
  CHECK(age.needs_refresh(true, (9'000 + ListAge::min_refresh_ms) * ms));
  age.received({5'000, true}, 20'000 * ms);
  CHECK_FALSE(age.needs_refresh(true, 90'000 * ms));
  CHECK(age.needs_refresh(false, 90'000 * ms));
}
