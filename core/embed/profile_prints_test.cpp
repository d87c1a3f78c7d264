#include <catch2/catch.hpp>

#include <string>

#include "embed/profile_prints.hpp"

using namespace bulkhead;

namespace {

// Returns true if `value` is one of the server's fingerprinted values.
bool known(const ServerDef &def, const std::string &value) {
  Profile profile;
  profile.servers.push_back(def);
  std::uint64_t count = 0;
  const std::string masked =
      prints_of(profile, std::string(32, 'k')).mask("it is <" + value + ">", &count);
  CHECK((count != 0) == (masked == "it is <***>"));
  return count != 0;
}

}  // namespace

TEST_CASE("masked_args() hides exactly the command-line values that are fingerprinted") {
  ServerDef def;
  def.args = {"--api-key",
              "canary-one",
              "--password=canary-two",
              "--header",
              "Authorization: Bearer canary-three",
              "--db",
              "postgres://user:canary-four@host/db",
              "--verbose",
              "plain-value"};
  for (const char *secret : {"canary-one", "canary-two", "canary-three", "canary-four"}) {
    INFO(secret);
    CHECK(known(def, secret));
  }
  CHECK_FALSE(known(def, "plain-value"));
  CHECK_FALSE(known(def, "--verbose"));
}

TEST_CASE("references of a disabled server are not credentials") {
  ServerDef def;
  def.args = {"--api-key", "${input:weather-key}", "--token=${TOKEN}"};
  def.env = {{"API_KEY", "${env:WEATHER_KEY}"},
             {"AUTH", "Bearer ${env:OTHER}"},
             {"PASSWORD", "${PASSWORD:-canary-five}"}};
  for (const char *reference :
       {"${input:weather-key}", "${TOKEN}", "${env:WEATHER_KEY}", "${env:OTHER}"}) {
    INFO(reference);
    CHECK_FALSE(known(def, reference));
  }
  CHECK(known(def, "${PASSWORD:-canary-five}"));
}

TEST_CASE("credentials in a URL's user, path and query are fingerprinted") {
  ServerDef def;
  def.url =
      "https://user:canary-one@host/hooks/T0123456789abcdefghij/x?api_key=canary-two&n=plainvalue";
  for (const char *secret : {"canary-one", "T0123456789abcdefghij", "canary-two"}) {
    INFO(secret);
    CHECK(known(def, secret));
  }
  CHECK_FALSE(known(def, "plainvalue"));
  ServerDef env;
  env.env = {{"DATABASE", "postgres://user:canary-one@host/db"}};
  CHECK(known(env, "canary-one"));
}

TEST_CASE("credentials in a JSON argument are fingerprinted") {
  ServerDef def;
  def.args = {R"({"port":1234567890,"apiKey":"canary-one","nested": { "token" : ["canary-two"]},)"
              R"("note":"plain-value","auth":"Bearer canary-three","escaped":"ghp_canary\/four",)"
              R"("db":"postgres://user:canary-five@host/db","pin":{"password":8374627465}})",
              R"(["--password", "plain-value", "ghp_canarysix"])",
              R"(--config={"secret":"canary-seven"})", R"({"token":"canary-eight")"};
  for (const char *secret :
       {"canary-one", "canary-two", "canary-three", "ghp_canary/four", "ghp_canary\\/four",
        "canary-five", "8374627465", "ghp_canarysix", "canary-seven", "canary-eight"}) {
    INFO(secret);
    CHECK(known(def, secret));
  }
  CHECK_FALSE(known(def, "plain-value"));
  CHECK_FALSE(known(def, "1234567890"));
}
