#include <catch2/catch.hpp>

#include "telemetry-sqlite/mask.hpp"

using namespace telemetry_sqlite;

namespace {

std::string json(std::string_view json) {
  std::uint64_t count = 0;
  std::string out(json);
  mask_json(&out, &count);
  CHECK((count == 0) == (out == json));
  return out;
}
std::string text(std::string_view text) {
  std::uint64_t count = 0;
  std::string out(text);
  mask_text(&out, &count);
  return out;
}

}  // namespace

TEST_CASE("values of members with such names are masked") {
  CHECK(json(R"({"password":"hunter2","user":"me"})") == R"({"password":"***","user":"me"})");
  CHECK(json(R"({"a":{"API_KEY" : "x","n":1},"b":"y"})") ==
        R"({"a":{"API_KEY" : "***","n":1},"b":"y"})");
  CHECK(json(R"({"pin":1234,"x":5})") == R"({"pin":"***","x":5})");
  CHECK(json(R"({"token":-1.5e3})") == R"({"token":"***"})");
  CHECK(json(R"({"secrets":["a","b",1],"c":"d"})") == R"({"secrets":["***","***","***"],"c":"d"})");
  CHECK(json(R"({"Authorization":"Bearer x\"y"})") == R"({"Authorization":"***"})");
  CHECK(json(R"({"credentials":{"user":"u","password":"p"}})") ==
        R"({"credentials":{"user":"***","password":"***"}})");
  CHECK(json(R"({"credentials":{"value":"x","more":[{"n":5}]},"c":"d"})") ==
        R"({"credentials":{"value":"***","more":[{"n":"***"}]},"c":"d"})");
  CHECK(json(R"({"tokens":["a",1,{"b":"c"}],"d":"e"})") ==
        R"({"tokens":["***",1,{"b":"***"}],"d":"e"})");
  CHECK(json(R"({"password":"","token":true,"secret":null})") ==
        R"({"password":"","token":true,"secret":null})");
}

TEST_CASE("MCP's own tokens and places in lists are none") {
  const std::string_view harmless =
      R"({"_meta":{"progressToken":"p1"},"nextPageToken":"n","maxTokens":5,"key":"k"})";
  CHECK(json(harmless) == harmless);
  const std::string_view schema =
      R"({"properties":{"password":{"type":"string"},"tokens":{"maximum":5}},"required":["password"]})";
  CHECK(json(schema).find(R"("password":{"type":"string"})") != std::string::npos);
  CHECK(json(R"({"properties":{"password":"hunter2"}})") == R"({"properties":{"password":"***"}})");
}

TEST_CASE("what looks like a credential is masked wherever it is") {
  const std::string ghp = "ghp_" + std::string(36, 'a');
  CHECK(json(R"({"text":"it is )" + ghp + R"(."})") == R"({"text":"it is ***"})");
  CHECK(text("x=" + ghp + ";") == "x=***;");
  CHECK(json(R"({"text":"a\n)" + ghp + R"(\n","b":[")" + ghp + R"("]})") ==
        R"({"text":"a\n***\n","b":["***"]})");
  CHECK(json(R"({"text":"be sk )" + ghp + " " + ghp + R"(\")") == R"({"text":"be sk *** ***\")");
  CHECK(text("Authorization: Bearer abcdefgh1234") == "Authorization: Bearer ***");
  CHECK(text("AKIAIOSFODNN7EXAMPLE") == "***");
  CHECK(text("sk-proj-0123456789abcdef") == "***");
  CHECK(text("https://me:hunter2@host/path") == "https://me:***@host/path");
  CHECK(text("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abcdefghijk") == "***");
  CHECK(text("-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----\nz") ==
        "***\nz");
  CHECK(json(R"(["-----BEGIN PRIVATE KEY-----\nabc)") == R"(["***)");
}

TEST_CASE("a credential is found at every place of a text") {
  const std::string filler = "The quick brown fox, 42 lines; be skillful at baking and hfy:/ . ";
  for (const std::string &one :
       {"ghp_" + std::string(36, 'a'), "AKIA" + std::string(16, 'Z'), "sk-" + std::string(20, '1'),
        "ya29." + std::string(30, 'x'), "xoxb-" + std::string(20, '2')}) {
    for (std::size_t before = 0; before <= filler.size(); ++before) {
      for (std::size_t behind = 0; behind < 3; ++behind) {
        const std::string begin = filler.substr(filler.size() - before) + " ";
        const std::string end = " " + filler.substr(0, behind);
        CHECK(text(begin + one + end) == begin + "***" + end);
        CHECK(json("[\"" + one + end + "\"]") == "[\"***" + end + "\"]");
      }
    }
  }
}

TEST_CASE("what does not, stays") {
  for (const std::string_view plain :
       {"", "a", "risk-management-of-the-company", "Bearer of bad news", "ghp_short",
        "https://host:8080/a@b", "https://me@host/",
        "eyJhbGciOiJIUzI1NiJ9aaaaaaaaaaaaaaaaaaaaaaaaaaa", "-----BEGIN CERTIFICATE-----",
        "12:30:45", "://", "MAKIAIOSFODNN7EXAMPLE"}) {
    INFO(plain);
    CHECK(text(plain) == plain);
  }
  const std::string_view content = R"({"a":[1,2,{"b":"\"x\"","c":"\u20ac"}],"d":"e\\"})";
  CHECK(json(content) == content);
}

TEST_CASE("cut texts are masked up to their end, and nothing is read behind it") {
  const std::string_view whole = R"({"user":"u","password":"hunter2 is it","n":12345})";
  for (std::size_t n = 0; n <= whole.size(); ++n) {
    const std::string cut = json(std::string(whole.substr(0, n)));
    CHECK(cut.find("hunter") == std::string::npos);
  }
  CHECK(json(R"({"password":"abc\)") == R"({"password":"***)");
}

TEST_CASE("of a text that was cut what the cut went through goes") {
  const auto cut = [](std::string text) {
    std::uint64_t count = 0;
    mask_cut_end(&text, &count);
    return text;
  };
  CHECK(cut("it is hunt") == "it is ***");
  CHECK(cut("it is ") == "it is ");
  CHECK(cut(std::string(2'000, 'x')) == std::string(1'488, 'x') + "***");
  CHECK(cut("") == "");
}

TEST_CASE("names") {
  for (const char *name : {"password", "DB_PASSWORD", "x-api-key", "accessToken", "client_secret",
                           "Set-Cookie", "private.key", "token", "refresh_token"}) {
    CHECK(is_secret_name(name));
  }
  for (const char *name : {"progressToken", "nextPageToken", "tokens", "max_tokens", "path", "key",
                           "author", "pinned", ""}) {
    CHECK_FALSE(is_secret_name(name));
  }
}
