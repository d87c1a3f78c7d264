// Tests that a reload keeps the file of a policy, except if the policy was swapped.
#include <catch2/catch.hpp>

#include "profile/difference.hpp"

using namespace bulkhead;

namespace {

Profile with_policies(const PluginFile &first, const PluginFile &second) {
  Profile profile;
  profile.policies.resize(2);
  profile.policies[0].id = "first";
  profile.policies[0].plugin = "guard";
  profile.policies[0].file = first;
  profile.policies[1].id = "second";
  profile.policies[1].plugin = "other";
  profile.policies[1].file = second;
  return profile;
}
PluginFile on_disk(const char *mark) {
  PluginFile file;
  file.mark = mark;
  return file;
}
PluginFile stored(const char *path, const char *mark) {
  PluginFile file = on_disk(mark);
  file.path = path;
  return file;
}

}  // namespace

TEST_CASE("the file of a swapped policy is used, and others need a restart") {
  const Profile now = with_policies(on_disk("a"), on_disk("b"));
  SECTION("a swap") {
    Profile next = with_policies(stored("/copy/1", "a"), on_disk("b"));
    CHECK(keep_fixed(now, &next).empty());
    CHECK(next.policies[0].file.path == "/copy/1");
    CHECK(next.policies[1].file.path.empty());
  }
  SECTION("a rollback, or a second swap") {
    const Profile swapped = with_policies(stored("/copy/1", "a"), on_disk("b"));
    Profile next = with_policies(stored("/copy/2", "a"), on_disk("b"));
    CHECK(keep_fixed(swapped, &next).empty());
    CHECK(next.policies[0].file.path == "/copy/2");
  }
  SECTION("a changed file") {
    Profile next = with_policies(on_disk("a"), on_disk("c"));
    const auto left = keep_fixed(now, &next);
    REQUIRE(left.size() == 1);
    CHECK(left[0].starts_with("policies.second: file changed; needs a restart"));
    CHECK(next.policies[1].file.mark == "b");
  }
  SECTION("another file after a swap") {
    const Profile swapped = with_policies(stored("/copy/1", "a"), on_disk("b"));
    Profile next = with_policies(on_disk("z"), on_disk("b"));
    CHECK(keep_fixed(swapped, &next).empty());
    CHECK(next.policies[0].file.path.empty());
    CHECK(next.policies[0].file.mark == "z");
  }
  SECTION("a digest after a swap") {
    const Profile swapped = with_policies(stored("/copy/1", "a"), on_disk("b"));
    Profile next = with_policies(on_disk(""), on_disk("b"));
    next.policies[0].sha256 = std::string(64, '0');
    const auto left = keep_fixed(swapped, &next);
    REQUIRE_FALSE(left.empty());
    for (const std::string &line : left) CHECK(line.starts_with("policies.first: "));
    CHECK(next.policies[0].file.path == "/copy/1");
  }
  SECTION("a swap beside another configuration") {
    Profile next = with_policies(stored("/copy/1", "a"), on_disk("b"));
    next.policies[1].config_json = R"({"other":1})";
    const auto left = keep_fixed(now, &next);
    REQUIRE(left.size() == 1);
    CHECK(left[0].starts_with("policies.second: needs a restart"));
    CHECK(next.policies[0].file.path == "/copy/1");
  }
}
