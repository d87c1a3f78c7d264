// Tests that listed tool names are resolved as they are in the gateway.
#include "commands/listed_call.hpp"

#include <catch2/catch.hpp>

#include "bulkhead/cpp/json.hpp"
#include "catalog/names.hpp"
#include "mcp/scan.hpp"

using namespace bulkhead;
using namespace bulkhead::program;

namespace {

ServerDef server_with(const std::string &name, const std::string &tools = {}) {
  ServerDef def;
  def.name = name;
  if (tools.empty()) return def;
  def.kept.definition = "d";
  def.kept.lists = {{0, R"({"capabilities":{"tools":{}},"instructions":"","tools":[)" + tools +
                            R"(],"resources":[],"resourceTemplates":[],"prompts":[]})"}};
  return def;
}

Profile memory_profile() {
  Profile out;
  out.servers = {server_with("memory", R"({"name":"delete_entities"},{"name":"memory__odd"})"),
                 server_with("files")};
  return out;
}

struct Seen {
  std::string server, name;
  std::size_t notes;
  friend bool operator==(const Seen &, const Seen &) = default;
};

Seen resolved(const Profile &profile, const std::string &call) {
  const auto out = resolve_listed_call(call, profile);
  INFO(call);
  REQUIRE(out.has_value());
  REQUIRE(mcp::valid_json(out->call));
  return {bh::json::member_text(out->call, "server"), bh::json::member_text(out->call, "name"),
          out->notes.size()};
}

}  // namespace

TEST_CASE("a listed name is resolved with and without a server") {
  const Profile profile = memory_profile();
  for (const char *call : {R"({"server":"memory","name":"memory__delete_entities"})",
                           R"( {"name":"memory__delete_entities","arguments":{"a":[1]}})"}) {
    CHECK(resolved(profile, call) == Seen{"memory", "delete_entities", 1});
  }
  const auto out = resolve_listed_call(
      R"({"name":"memory__delete_entities","arguments":{"a":[1]},"session":2})", profile);
  CHECK(mcp::member(out->call, "arguments") == R"({"a":[1]})");
  CHECK(mcp::member(out->call, "session") == "2");
  // There is no stored list for `files`.
  CHECK(resolved(profile, R"({"name":"files__read"})") == Seen{"files", "read", 1});
  CHECK(resolved(profile, R"({"server":"files","name":"read"})") == Seen{"files", "read", 0});
}

TEST_CASE("an original name that looks like a listed name is kept") {
  const Profile profile = memory_profile();
  CHECK(resolved(profile, R"({"server":"memory","name":"memory__odd"})") ==
        Seen{"memory", "memory__odd", 0});
  CHECK(resolved(profile, R"({"name":"memory__memory__odd"})") == Seen{"memory", "memory__odd", 1});
}

TEST_CASE("unknown servers and tools become notes, and a name of no server is an error") {
  const Profile profile = memory_profile();
  CHECK(resolved(profile, R"({"server":"memory","name":"delete"})") == Seen{"memory", "delete", 1});
  CHECK(resolved(profile, R"({"name":"memory__delete"})") == Seen{"memory", "delete", 2});
  CHECK(resolved(profile, R"({"server":"nosuch","name":"read"})") == Seen{"nosuch", "read", 1});
  for (const char *name : {"read", "nosuch__read", "memory__"}) {
    const auto out = resolve_listed_call(R"({"name":")" + std::string(name) + R"("})", profile);
    REQUIRE_FALSE(out.has_value());
    CHECK(out.error().text.find("no server") != std::string::npos);
  }
}

TEST_CASE("the profile's naming is used: separator, no prefix, aliases, shortened names") {
  Profile profile = memory_profile();
  profile.naming.separator = "-";
  CHECK(resolved(profile, R"({"name":"memory-delete_entities"})") ==
        Seen{"memory", "delete_entities", 1});
  CHECK_FALSE(resolve_listed_call(R"({"name":"memory__delete_entities"})", profile).has_value());
  profile.naming.aliases["forget"] = "memory-delete_entities";
  CHECK(resolved(profile, R"({"name":"forget"})") == Seen{"memory", "delete_entities", 1});
  CHECK(resolved(profile, R"({"server":"memory","name":"forget"})") ==
        Seen{"memory", "delete_entities", 1});
  profile.naming.prefix = false;
  CHECK(resolved(profile, R"({"name":"delete_entities"})").server == "memory");

  Profile shortening = memory_profile();
  shortening.naming.shorten = true;
  shortening.naming.max_length = 20;
  const auto listed = Names(shortening.naming).compose("memory", "delete_entities");
  REQUIRE(listed.has_value());
  REQUIRE(listed->size() <= 20);
  CHECK(resolved(shortening, R"({"name":")" + *listed + R"("})") ==
        Seen{"memory", "delete_entities", 1});
}

TEST_CASE(
    "a name that several servers can have requires a server name, unless one server lists it") {
  Profile profile;
  profile.servers = {server_with("a"), server_with("a__b")};
  const std::string call = R"({"name":"a__b__t"})";
  const auto out = resolve_listed_call(call, profile);
  REQUIRE_FALSE(out.has_value());
  CHECK(out.error().text.find("several servers") != std::string::npos);
  profile.servers[1] = server_with("a__b", R"({"name":"t"})");
  CHECK(resolved(profile, call) == Seen{"a__b", "t", 1});
}

TEST_CASE("other messages and invalid descriptions are unchanged") {
  const Profile profile = memory_profile();
  for (const char *call :
       {"", "[1]", "{", R"({"server":"memory"})", R"({"name":1})",
        R"({"on":"mcp.notification","server":"memory","name":"memory__delete_entities"})",
        R"({"method":"resources/read","server":"memory","name":"memory__delete_entities"})"}) {
    const auto out = resolve_listed_call(call, profile);
    INFO(call);
    REQUIRE(out.has_value());
    CHECK(out->call == call);
    CHECK(out->notes.empty());
  }
}
