// Tests that credentials do not appear in anything that is shown to users: values, notes and
// errors.
#include <catch2/catch.hpp>

#include "layers/load.hpp"
#include "layers/profile_test_util.hpp"
#include "profile/secrets.hpp"

using namespace bulkhead;
using namespace bulkhead::test;

namespace {

const std::string kCanary = "canary-8d1f0c";

void no_canary(const Profile &profile) {
  for (const Profile::Shown &value : profile.shown) {
    INFO(value.path);
    CHECK(value.value.find(kCanary) == std::string::npos);
    CHECK(value.path.find(kCanary) == std::string::npos);
  }
  for (const std::string &note : profile.notes) CHECK(note.find(kCanary) == std::string::npos);
}

void no_canary(const std::vector<ProfileError> &errors) {
  for (const ProfileError &error : errors) CHECK_FALSE(has(to_string(error), kCanary));
}

}  // namespace

TEST_CASE("shown values contain no credentials, whether from variables or literal") {
  const Profile profile = good({{"file", "a.toml", R"(
[transports.http]
plugin = "t"
token = "canary-8d1f0c"
from_env = { api_key = "${env:V}", plain = "Bearer canary-8d1f0c" }
listen = "127.0.0.1:1"
upstream = "http://u:canary-8d1f0c@h/"
[mcpServers.a]
command = "c"
args = ["--api-key", "canary-8d1f0c", "--token=canary-8d1f0c", "x", "Authorization: Bearer canary-8d1f0c",
        "http://h/?k=canary-8d1f0c"]
[mcpServers.a.env]
PLAIN = "canary-8d1f0c"
REF = "${V}"
[mcpServers.b]
url = "https://h/p?key=canary-8d1f0c&x=${V}&y=${W:-canary-8d1f0c}"
headers = { X = "canary-8d1f0c" }
[mcpServers.c]
url = "https://h/${V}/a"
bearerToken = "canary-8d1f0c"
oauth = { clientSecret = "canary-8d1f0c" }
)"}},
                               {{"V", kCanary}});
  no_canary(profile);
  CHECK(shown(profile, "mcpServers.a.env.PLAIN").value == "***");
  CHECK(shown(profile, "mcpServers.b.headers.X").value == "***");
  CHECK(shown(profile, "mcpServers.b.url").value == "https://h/p?key=***&x=${V}&y=***");
  CHECK(shown(profile, "mcpServers.c.url").value == "https://h/${V}/a");
  CHECK(shown(profile, "mcpServers.c.bearerToken").value == "***");
  CHECK(shown(profile, "mcpServers.a.args[3]").value == "x");
  CHECK(shown(profile, "transports.http.token").value == "***");
  CHECK(shown(profile, "transports.http.listen").value == "127.0.0.1:1");
  // The profile itself contains the credentials.
  CHECK(profile.servers[0].env.at("REF") == kCanary);
  CHECK(profile.servers[2].url == "https://h/" + kCanary + "/a");
}

TEST_CASE("errors contain no credentials") {
  const std::map<std::string, std::string> values = {{"V", kCanary + "\r\nX: y"}};
  no_canary(bad({{"f", "a.toml", R"(
[mcpServers.a]
url = "ftp://u:canary-8d1f0c@h/"
[mcpServers.b]
url = "http://h:canary-8d1f0c/"
headers = { X = "canary-8d1f0c\n", Accept = "canary-8d1f0c", Y = "${V}", "x" = "canary-8d1f0c" }
[mcpServers.c]
command = "c"
args = "canary-8d1f0c"
env = { A = ["canary-8d1f0c"], B = "${unset_x:canary-8d1f0c", C = "${can'ary canary-8d1f0c}" }
[mcpServers.d]
command = "c"
headers = "canary-8d1f0c"
url = ["canary-8d1f0c"]
bearerToken = { x = "canary-8d1f0c" }
[mcpServers.e]
url = "${V}"
)"}},
                values));
  no_canary(bad({{"f", "a.toml", "[mcpServers.a]\nenv.K = canary-8d1f0c\n"}}));
  no_canary(bad({{"f", "a.json", "{\"mcpServers\": {\"a\": {\"env\": {\"K\": canary-8d1f0c}}}}"}}));
}

TEST_CASE("the TOML parser's message does not repeat an unquoted number") {
  const auto errors =
      bad({{"f", "a.toml", "[mcpServers.a]\nenv.K = 99999999999999999999998887776665\n"}});
  CHECK_FALSE(has(to_string(errors[0]), "8887776665"));
}

TEST_CASE("credentials are detected by name and value") {
  using namespace bulkhead::profiles;
  for (const char *name : {"GITHUB_TOKEN", "apiKey", "X-API-Key", "Authorization", "DB_PASSWORD",
                           "clientSecret", "COOKIE", "GH_PAT", "basic_auth", "DB_PASS", "pass",
                           "dbPass", "MYSQL-PW", "APP_JWT", "SENTRY_DSN", "SLACK_WEBHOOK_URL"})
    CHECK(credential_name(name));
  for (const char *name : {"PATH", "HOME", "AUTHOR", "NODE_ENV", "LOG_LEVEL", "patch", "BYPASS",
                           "compass", "PASSIVE", "pwa"})
    CHECK_FALSE(credential_name(name));
  for (const char *value : {"sk-abcdef123", "ghp_abcdefgh", "Bearer abcd", "postgres://u:p@h/db",
                            "postgres://u:p/w@h/db"})
    CHECK(credential_value(value));
  for (const char *value : {"node", "https://example.com/a?b=c@d", "info", "sk-", "http://h:80/a@b",
                            "http://[::1]:80/a@b"})
    CHECK_FALSE(credential_value(value));
  CHECK(masked_url("https://u:p@h/a/1234567890abcdefghijkl/b?x&y=1#f") ==
        "https://***@h/a/***/b?***&y=***#***");
  CHECK(masked_url("nonsense") == "nonsense");
  CHECK(masked_url("postgres://u:canary/canary@h/db") == "postgres://***@h/db");
  // References are not credentials.
  CHECK(masked_args({"--key", "${input:k}", "--token=${TOKEN}", "--password", "${P:-canary}",
                     "Authorization: Bearer ${env:T}", "Bearer ghp_canary1"}) ==
        std::vector<std::string>{"--key", "${input:k}", "--token=${TOKEN}", "--password", "***",
                                 "Authorization: Bearer ${env:T}", "***"});
  CHECK(masked_args({R"({"port":1,"token":"canary"})", R"([1,"ghp_canary1"])", R"({"a":1})"}) ==
        std::vector<std::string>{"***", "***", R"({"a":1})"});
  CHECK(masked_args({R"(--config={"token":"canary"})", R"(--config={"a":1})"}) ==
        std::vector<std::string>{"--config=***", R"(--config={"a":1})"});
}
