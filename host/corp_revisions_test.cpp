#include "corp_revisions.hpp"

#include <catch2/catch.hpp>
#include <fstream>

#include "private_file.hpp"
#include "test_folder.hpp"

using namespace bulkhead;
using namespace bulkhead::program;

namespace {

CorpRevision at(const std::string &revision, const std::string &current) {
  return {"acme-base", revision, current, false};
}

}  // namespace

TEST_CASE("an older revision, or an older catalogue, does not come back") {
  const TestFolder folder;
  const CorpRevisions seen(folder / "state");
  const CorpRevision now = at("2026.0131.2", "2026.0201.1");
  CHECK(seen.check(now).has_value());
  REQUIRE(seen.remember(now).has_value());
  CHECK(seen.check(now).has_value());
  CHECK(seen.check(at("2026.0131.3", "2026.0201.1")).has_value());
  CHECK(seen.check({"other", "2020.0101.1", "2020.0101.1", false}).has_value());
  const auto older = seen.check(at("2026.0131.1", "2026.0201.1"));
  REQUIRE_FALSE(older.has_value());
  CHECK(older.error().text.find("2026.0131.2 was here before") != std::string::npos);
  CHECK(older.error().text.ends_with("[rollback]"));
  CHECK_FALSE(seen.check(at("2026.0131.2", "2026.0131.2")).has_value());
  // Several profiles, each by itself.
  REQUIRE(seen.remember({"other", "2020.0101.1", "2020.0101.1", false}).has_value());
  REQUIRE(seen.remember(at("2026.0301.1", "2026.0301.1")).has_value());
  CHECK_FALSE(seen.check(now).has_value());
  CHECK(seen.check({"other", "2020.0101.1", "2020.0101.1", false}).has_value());
}

TEST_CASE("a record that is damaged is said to be, not forgotten") {
  const TestFolder folder;
  const CorpRevisions seen(folder.path);
  REQUIRE(write_private(folder.path, "corp-revisions", "acme-base x y\n").has_value());
  CHECK(seen.check(at("2026.0131.2", "2026.0131.2")).error().text.find("is damaged") !=
        std::string::npos);
  std::string many;
  for (int i = 0; i < 101; ++i) many += "acme" + std::to_string(i) + " 2026.0131.2 2026.0131.2\n";
  REQUIRE(write_private(folder.path, "corp-revisions", many).has_value());
  CHECK_FALSE(seen.check(at("2026.0131.2", "2026.0131.2")).has_value());
}
