// What a person sees of the values that decide what runs, and of those that are credentials.
#include "approve/approve_value.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>

#include "approve/approve_text.hpp"

using namespace bulkhead;
using namespace bulkhead::program;

TEST_CASE("masking counts characters, not bytes") {
  CHECK(masked_value("") == "***");
  CHECK(masked_value("\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC") == "***");
  CHECK(masked_value("\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC") ==
        "\xC3\xBC\xC3\xBC\xC3\xBC***");
  CHECK(masked_value("\x1B[1;31m12345") == "\\u001b[1***");
}

TEST_CASE("masking leaves references, not their defaults nor what is around them") {
  CHECK(masked_value("${NAME}") == "${NAME}");
  CHECK(masked_value("${env:NAME}") == "${env:NAME}");
  CHECK(masked_value("${NAME:-canary-default}") == "${NAME:-can***}");
  CHECK(masked_value("${env:}") == "***");
  CHECK(masked_value("${A}canary${B}") == "${A}***${B}");
  CHECK(masked_value("canary-canary${can ary}") == "can***");
}

TEST_CASE("what decides what runs, and what the sandbox opens, is shown") {
  using Pair = std::pair<const char *, const char *>;
  for (const auto &[name, value] :
       {Pair{"CONFIG", "${HOME}/.ssh"}, Pair{"NODE_OPTIONS", "--require ./x.js"},
        Pair{"NODE_OPTIONS", "sk-abcdef123456"}, Pair{"API_KEY", "/root/.ssh"},
        Pair{"API_KEY", "${HOME}/.ssh"}, Pair{"API_KEY", "${X:-/root}/.ssh"},
        Pair{"LD_PRELOAD", "npm_abcdefgh.so"}, Pair{"PYTHONSTARTUP", "secret_file.py"},
        Pair{"path", "ghp_bin"}, Pair{"PRIVATE_KEY_PATH", "sk-abcdef123456"},
        Pair{"LOG_LEVEL", "debug"}, Pair{"RUBYOPT", "-rsk-abcdef1234567890"},
        Pair{"API_KEY", ""}}) {
    INFO(name << " = " << value);
    CHECK_FALSE(masked_setting(name, value).has_value());
  }
}

TEST_CASE("credentials are masked, by name or by value") {
  CHECK(masked_setting("API_KEY", "canary-canary") == "can***");
  CHECK(masked_setting("NODE_AUTH_TOKEN", "canary-canary") == "can***");
  CHECK(masked_setting("X", "ghp_canarycanary") == "ghp***");
  CHECK(masked_setting("X", "a1b2c3d4e5f6a7b8c9d0") == "a1b***");
  CHECK(masked_setting("Authorization", "Bearer canary-canary") == "Bearer can***");
  CHECK(masked_setting("API_KEY", "canary/canary") == "can***");
  CHECK(masked_setting("DB", "postgres://u:canary@h/db") == "postgres://***@h/db");
}

TEST_CASE("the folders that will be opened are listed") {
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
