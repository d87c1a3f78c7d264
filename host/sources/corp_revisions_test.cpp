#include "sources/corp_revisions.hpp"

#include <catch2/catch.hpp>
#include <fstream>

#include "common/private_file.hpp"
#include "common/test_folder.hpp"

using namespace bulkhead;
using namespace bulkhead::program;

namespace {

CorpRevision at(const std::string &revision, const std::string &current) {
  return {"acme-base", revision, current, false};
}

}  // namespace

TEST_CASE("older revisions and older catalogues are rejected") {
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
  CHECK(older.error().text.find("2026.0131.2 was seen before") != std::string::npos);
  CHECK(older.error().text.ends_with("[rollback]"));
  CHECK_FALSE(seen.check(at("2026.0131.2", "2026.0131.2")).has_value());
  // The revisions of different profiles are independent.
  REQUIRE(seen.remember({"other", "2020.0101.1", "2020.0101.1", false}).has_value());
  REQUIRE(seen.remember(at("2026.0301.1", "2026.0301.1")).has_value());
  CHECK_FALSE(seen.check(now).has_value());
  CHECK(seen.check({"other", "2020.0101.1", "2020.0101.1", false}).has_value());
}

TEST_CASE("stored revisions never decrease, regardless of the order of writers") {
  const TestFolder folder;
  const CorpRevisions seen(folder.path);
  REQUIRE(seen.remember(at("2026.0201.1", "2026.0201.1")).has_value());
  // Another gateway may store older revisions of the profile or of the catalogue.
  REQUIRE(seen.remember(at("2026.0131.2", "2026.0131.2")).has_value());
  REQUIRE(seen.remember(at("2026.0131.2", "2026.0301.1")).has_value());
  CHECK_FALSE(seen.check(at("2026.0131.2", "2026.0301.1")).has_value());
  CHECK_FALSE(seen.check(at("2026.0201.1", "2026.0201.1")).has_value());
  CHECK(seen.check(at("2026.0201.1", "2026.0301.1")).has_value());
  // A call that changes nothing does not write and does not need the lock.
  REQUIRE(seen.remember(at("2026.0131.2", "2026.0131.2")).has_value());
  const auto lock = lock_file(seen.file() + ".lock", 0);
  REQUIRE(lock.has_value());
  REQUIRE(seen.remember(at("2026.0131.2", "2026.0131.2")).has_value());
  CHECK(seen.remember(at("2026.0401.1", "2026.0401.1")).error().code == BH_E_UNAVAILABLE);
}

TEST_CASE("a revision that a catalogue has rejected stays rejected with an older catalogue") {
  const TestFolder folder;
  const CorpRevisions seen(folder.path);
  const CorpRevision used = at("2026.0131.2", "2026.0131.2");
  REQUIRE(seen.remember(used).has_value());
  // The catalogue's current revision is stored even if the profile was never used.
  REQUIRE(seen.remember_catalogue(at("2026.0301.1", "2026.0201.1")).has_value());
  CHECK(seen.check(used).error().text.ends_with("[rollback]"));
  CHECK(seen.check(at("2026.0131.2", "2026.0201.1")).has_value());
  // A revision can be revoked without a replacement, and even if it was never used.
  for (const std::string id : {"acme-base", "acme-new"}) {
    CorpRevision now{id, "2026.0131.3", "2026.0201.1", false};
    CHECK(seen.check(now).has_value());
    now.revoked = true;
    REQUIRE(seen.remember_catalogue(now).has_value());
    now.revoked = false;
    CHECK(seen.check(now).error().text.ends_with("[revoked]"));
    now.revision = "2026.0131.4";
    CHECK(seen.check(now).has_value());
  }
  // At the limit, the oldest entry is removed.
  for (int i = 0; i < 250; ++i) {
    CorpRevision now = at("2026.0101." + std::to_string(i), "2026.0201.1");
    now.revoked = true;
    REQUIRE(seen.remember_catalogue(now).has_value());
  }
  CHECK(seen.check(at("2026.0131.3", "2026.0201.1")).has_value());
  CHECK_FALSE(seen.check(at("2026.0101.249", "2026.0201.1")).has_value());
}

TEST_CASE("a damaged file is an error and is not discarded") {
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
