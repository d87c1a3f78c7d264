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

TEST_CASE("values of members with secret names are masked") {
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

TEST_CASE("MCP progress tokens and pagination tokens are not masked") {
  const std::string_view harmless =
      R"({"_meta":{"progressToken":"p1"},"nextPageToken":"n","maxTokens":5,"key":"k"})";
  CHECK(json(harmless) == harmless);
  const std::string_view schema =
      R"({"properties":{"password":{"type":"string"},"tokens":{"maximum":5}},"required":["password"]})";
  CHECK(json(schema).find(R"("password":{"type":"string"})") != std::string::npos);
  CHECK(json(R"({"properties":{"password":"hunter2"}})") == R"({"properties":{"password":"***"}})");
}

TEST_CASE("text in the format of a credential is masked at any position") {
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

TEST_CASE("values after an equals sign are masked if their name is secret") {
  const std::string ghp = "ghp_" + std::string(36, 'a');
  for (const auto &[before, behind] : std::initializer_list<std::pair<std::string, std::string>>{
           {"m7 password=hunter22 " + ghp, "m7 password=*** ***"},
           {"DB_PASSWORD='hunter 2' x", "DB_PASSWORD='***' x"},
           {"a=1&access_token=abc%20d&b=2", "a=1&access_token=***&b=2"},
           {"apikey=" + ghp + ";x=" + ghp, "apikey=***;x=***"},
           {"token=a=b==, user=me", "token=***, user=me"},
           {"Authorization=Bearer abcdefgh1234 x", "Authorization=Bearer *** x"},
           {"PRIVATE_KEY=-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----\nz",
            "PRIVATE_KEY=***\nz"},
           {"password=", "password="},
           {"password= x", "password= x"},
           {"max_tokens=5 page_token=6 x=y", "max_tokens=5 page_token=6 x=y"},
           {"password==", "password=***"}}) {
    INFO(before);
    CHECK(text(before) == behind);
  }
  CHECK(json(R"({"env":["API_KEY=\"x y\"","B=c"],"cmd":"run\npassword=hunter2\nnext"})") ==
        R"({"env":["API_KEY=\"***\"","B=c"],"cmd":"run\npassword=***\nnext"})");
}

TEST_CASE("a credential is found at each position of a text") {
  const std::string filler = "The quick brown fox, 42 lines; be skillful at baking and hfy:/ . ";
  for (const std::string &one :
       {"ghp_" + std::string(36, 'a'), "AKIA" + std::string(16, 'Z'), "sk-" + std::string(20, '1'),
        "ya29." + std::string(30, 'x'), "xoxb-" + std::string(20, '2')}) {
    for (std::size_t before = 0; before <= filler.size(); ++before) {
      for (std::size_t behind = 0; behind < 3; ++behind) {
        const std::string begin = filler.substr(filler.size() - before) + " ";
        const std::string end = " " + filler.substr(0, behind);
        CHECK(text(begin + one + end) == begin + "***" + end);
        CHECK(json("[\"" + begin + one + end + "\"]") == "[\"" + begin + "***" + end + "\"]");
      }
    }
  }
}

TEST_CASE("a credential is found after an escape sequence, and in a URL with escaped slashes") {
  const std::string ghp = "ghp_" + std::string(36, 'a');
  for (const std::string escape : {R"(\u003c)", R"(\u0026)", R"(\u00A0)", R"(\n)", R"(\/)"}) {
    INFO(escape);
    CHECK(json("[\"" + escape + ghp + "\"]") == "[\"" + escape + "***\"]");
    CHECK(json("[\"word" + escape + ghp + "\"]") == "[\"word" + escape + "***\"]");
  }
  for (const std::string none : {"u003c", R"(\u03c)", R"(\u003g)", R"(\v003c)"}) {
    INFO(none);
    CHECK(text(none + ghp) == none + ghp);
  }
  CHECK(json(R"(["https:\/\/me:hunter2@host\/path"])") == R"(["https:\/\/me:***@host\/path"])");
  CHECK(json(R"(["https:\/\/host:80\/a@b"])") == R"(["https:\/\/host:80\/a@b"])");
}

namespace {

std::string repeated(std::string_view one, std::size_t bytes) {
  std::string out;
  while (out.size() < bytes) out += one;
  return out;
}

}  // namespace

// Without no_jwt, masking one of these texts would take half a minute.
TEST_CASE("large texts of credential prefixes are masked in linear time") {
  constexpr std::size_t large = 256u << 10;
  for (const std::string_view one : {"eyJ-", "eyJ/eyJ+", "sk-", "x sk-", "Bearer ", "-----BEGIN ",
                                     "-----BEGIN PRIVATE KEY ", "://", R"(:\/\/)", "://a:", "ghp_ ",
                                     "\\\"", "=", "x=", "passwor=", "eyJ-=", "password='"}) {
    INFO(one);
    const std::string many = repeated(one, large);
    if (one != "sk-" && one != "password='") CHECK(text(many) == many);
    if (one.find('"') == one.npos) CHECK(json("[\"" + many + "\"]").size() <= many.size() + 4);
  }
  CHECK(text(repeated("\\", large)) == "***");  // more than 8 layers of escapes
  const std::string many = repeated("eyJ-", large), jwt = "eyJ" + std::string(40, 'a') + ".b.c";
  CHECK(text(repeated("sk-", large)) == "***");
  // The whole text is one token, so it is a JWT only if it ends in two dot-separated parts.
  CHECK(text(many + ".a") == many + ".a");
  CHECK(text(many + ".a.b") == "***");
  CHECK(text("." + many + ".a") == "." + many + ".a");
  // no_jwt must not affect the next token or another format.
  CHECK(text(many + " " + jwt) == many + " ***");
  CHECK(text(many + " " + jwt + " " + many + " " + jwt) == many + " *** " + many + " ***");
  CHECK(text(many + "ghp_" + std::string(36, 'a')) == many + "***");
  CHECK(json("[\"" + many + "\",\"" + jwt + "\"]") == "[\"" + many + "\",\"***\"]");
  CHECK(text("-----BEGIN " + std::string(53, 'x') + "PRIVATE KEY-----abc") == "***");
  const std::string far = "-----BEGIN " + std::string(54, 'x') + "PRIVATE KEY-----abc";
  CHECK(text(far) == far);
}

TEST_CASE("other text is unchanged") {
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

TEST_CASE("truncated texts are masked up to their end, without reading beyond it") {
  const std::string_view whole = R"({"user":"u","password":"hunter2 is it","n":12345})";
  for (std::size_t n = 0; n <= whole.size(); ++n) {
    const std::string cut = json(std::string(whole.substr(0, n)));
    CHECK(cut.find("hunter") == std::string::npos);
  }
  CHECK(json(R"({"password":"abc\)") == R"({"password":"***)");
}

TEST_CASE("names and values are compared after decoding") {
  const std::string ghp = "ghp_" + std::string(36, 'a');
  // Member names.
  CHECK(json(R"({"p\u0061ssword":"hunter2"})") == R"({"p\u0061ssword":"***"})");
  CHECK(json(R"({"\u0070\u0061ssw\u006Frd":5,"x":5})") ==
        R"({"\u0070\u0061ssw\u006Frd":"***","x":5})");
  CHECK(json(R"({"access%5Ftoken":"x","page%54oken":"y"})") ==
        R"({"access%5Ftoken":"***","page%54oken":"y"})");
  CHECK(json(R"({"s\u0065crets":{"a":["b",1]}})") == R"({"s\u0065crets":{"a":["***","***"]}})");
  CHECK(json(R"({"propert\u0069es":{"password":{"description":"of the user"}}})") ==
        R"({"propert\u0069es":{"password":{"description":"of the user"}}})");
  // Values.
  CHECK(json(R"({"a":"ghp\u005f)" + std::string(36, 'a') + R"("})") == R"({"a":"***"})");
  CHECK(json(R"({"a":"x \u0067hp_)" + std::string(36, 'a') + R"(\n"})") == R"({"a":"x ***\n"})");
  CHECK(json(R"({"a":"password\u003dhunter2 and"})") == R"({"a":"password\u003d*** and"})");
  CHECK(json(R"({"a":"password=h\u0075nter2 and"})") == R"({"a":"password=*** and"})");
  CHECK(json(R"({"a":"Be\u0061rer abcdefgh1234"})") == R"({"a":"Be\u0061rer ***"})");
  CHECK(json(R"({"a":"https:\u002f\u002fme\u003ahunter2\u0040host"})") ==
        R"({"a":"https:\u002f\u002fme\u003a***\u0040host"})");
  CHECK(json(R"({"a":"token=abc\/def=="})") == R"({"a":"token=***"})");
  // Percent-encoding.
  CHECK(json(R"({"a":"https://h/?u=me&password%3Dhunter2"})") ==
        R"({"a":"https://h/?u=me&password%3D***"})");
  CHECK(json(R"({"a":"x=1&p%61ssword=hunt%65r2&y=1"})") == R"({"a":"x=1&p%61ssword=***&y=1"})");
  CHECK(json(R"({"a":"q=https%3A%2F%2Fme%3Ahunter2%40host%2Fx"})") ==
        R"({"a":"q=https%3A%2F%2Fme%3A***%40host%2Fx"})");
  CHECK(json(R"({"a":"q=https%253A%252F%252Fme%253Ahunter2%2540host"})") ==
        R"({"a":"q=https%253A%252F%252Fme%253A***%2540host"})");
  CHECK(text("data=%7B%22password%22%3A%22hunter2%22%2C%22pin%22%3A1234%7D") ==
        "data=%7B%22password%22%3A%22***%22%2C%22pin%22%3A%22***%22%7D");
  CHECK(text("GET /?t=gh%70_" + std::string(36, 'a')) == "GET /?t=***");
}

TEST_CASE("JSON within a JSON string is masked") {
  CHECK(json(R"({"text":"{\"password\":\"hunter2\",\"user\":\"me\",\"pin\":1234}"})") ==
        R"({"text":"{\"password\":\"***\",\"user\":\"me\",\"pin\":\"***\"}"})");
  CHECK(json(R"({"text":" [{\"p\\u0061ssword\":\"hunter2\"}]"})") ==
        R"({"text":" [{\"p\\u0061ssword\":\"***\"}]"})");
  CHECK(json(R"({"text":"{\"a\":\"{\\\"password\\\":\\\"hun\\\\\\\"ter\\\",\\\"n\\\":1}\"}"})") ==
        R"({"text":"{\"a\":\"{\\\"password\\\":\\\"***\\\",\\\"n\\\":1}\"}"})");
  CHECK(json(R"({"text":"It answered:\n{\n  \"api_key\": \"x y\"\n}\nthen password=hunter2"})") ==
        R"({"text":"It answered:\n{\n  \"api_key\": \"***\"\n}\nthen password=***"})");
  CHECK(json(R"({"u":"{\"url\":\"a%22b\",\"password\":\"hunter2\"}"})") ==
        R"({"u":"{\"url\":\"a%22b\",\"password\":\"***\"}"})");
  CHECK(text(R"(failed: {"password":"hunter2"} at 12)") == R"(failed: {"password":"***"} at 12)");
  // No part of the value may remain, regardless of where the text is truncated.
  const std::string whole =
      R"({"text":"{\"user\":\"u\",\"p\\u0061ssword\":\"hunter2 is it\",\"n\":1}"})";
  for (std::size_t n = 0; n <= whole.size(); ++n) {
    CHECK(json(whole.substr(0, n)).find("hunter") == std::string::npos);
  }
  // Plain text is unchanged.
  for (const std::string_view plain :
       {R"({"a":"{\"b\":\"c\",\"n\":5,\"path\":\"C:\\\\x\"}"})",
        R"({"a":"100% [\"x\"] {y} %zz \u00e9"})", R"({"a":"if (x) { \"y\": [1, 2] }"})",
        R"({"a":"%","b":"%4","c":"%41","d":"\\u0041"})"}) {
    INFO(plain);
    CHECK(json(plain) == plain);
  }
}

TEST_CASE("large texts of escape sequences are masked in linear time") {
  for (const std::string_view one :
       {R"(\\)", R"(\")", R"(\u005c)", "%25", "%5C", R"({\")", R"([{\"token\":)", R"(\u007b\u0022)",
        R"(%5Cu0025)", "{ ", R"({\"a\":\"{\\\")"}) {
    INFO(one);
    std::string many;
    while (many.size() < 256u << 10) many += one;
    const std::string before = "[\"" + many + "\",\"", after = "\"]";
    const std::string out = json(before + "ghp_" + std::string(36, 'a') + after);
    CHECK(out.ends_with("***\"]"));
  }
}

// Returns a token whose first letter is percent-encoded this often.
std::string encoded_token(unsigned layers) {
  std::string letter = "%";
  for (unsigned i = 1; i < layers; ++i) letter += "25";
  return letter + "67hp_" + std::string(36, 'a');
}

TEST_CASE("text that exceeds a limit on decoding is masked completely") {
  CHECK(text("a " + encoded_token(8) + " b") == "a *** b");
  CHECK(text("a " + encoded_token(9) + " b") == "***");
  CHECK(json(R"({"a":"b )" + encoded_token(9) + R"(","c":"d"})") == R"({"a":"***","c":"d"})");
  CHECK(json(R"({"%252525252525252570assword":"hunter2"})") ==
        R"({"%252525252525252570assword":"***"})");
  // Both kinds of escapes remain in all layers, so that the number of decoded bytes doubles with
  // each layer.
  const std::string both = std::string(512, '\\') + encoded_token(9) + std::string(4'000, 'x');
  for (unsigned layers = 1; layers <= 9; ++layers) {
    INFO(layers);
    CHECK(text(both + ' ' + encoded_token(layers)).find("hp_") == std::string::npos);
  }
}

TEST_CASE("a quoted value that is truncated is masked up to the end") {
  CHECK(text(R"(password="a secret phra)") == R"(password="***)");
  CHECK(text("password='a secret phra") == "password='***");
  CHECK(json(R"({"a":"password=\"a secret phra"})") == R"({"a":"password=\"***"})");
  CHECK(text("password='a secret " + std::string(300, 'x')).find("secret") == std::string::npos);
  CHECK(text(R"(password="a secret phrase" b)") == R"(password="***" b)");
}

TEST_CASE("the last word of a truncated text is masked") {
  const auto cut = [](std::string text) {
    std::uint64_t count = 0;
    mask_cut_end(&text, &count);
    return text;
  };
  CHECK(cut("it is hunt") == "it is ***");
  CHECK(cut("it is ") == "it is ");
  CHECK(cut(R"(it is\nhunt)") == R"(it is\n***)");
  CHECK(cut(R"(it is \u0068\u0075nt)") == "it is ***");
  CHECK(cut(R"(it is h\u0075\u006)") == "it is ***");
  CHECK(cut(R"(it is h\u0075\)") == "it is ***");
  CHECK(cut(R"({\"a\":\"\\u0068\\u0075nt)") == R"({\"a\":\"***)");
  CHECK(cut("it is h%75%") == "it is ***");
  CHECK(cut("it is h%2575%256E") == "it is ***");
  CHECK(cut(R"(C:\\hunt)") == R"(C:\\***)");
  CHECK(cut(std::string(2'000, 'x')) == std::string(1'488, 'x') + "***");
  CHECK(cut("") == "");
  // Passwords of URLs may contain characters at which a word ends.
  CHECK(cut("postgres://me:h!u$nt") == "postgres://me:***");
  CHECK(cut(R"({\"a\":\"postgres:\/\/me:h!u$nt)") == R"({\"a\":\"postgres:\/\/me:***)");
  CHECK(cut("postgres://me:h%21u%24nt") == "postgres://me:***");
  for (const std::string_view password :
       {"h%2Fun!t", "h%40un!t", "p@ss!wo$rd", "h%2521un%2524t!", "a!b%20c"}) {
    INFO(password);
    CHECK(cut("postgres://me:" + std::string(password)) == "postgres://me:***");
  }
  CHECK(cut(R"(postgres://me:h\u0021un!t)") == "postgres://me:***");
  CHECK(cut("smtp://a@b.c:pa!ss") == "smtp://a@b.c:***");
  CHECK(cut("see http://host:8080/a and !hunt") == "see http://host:8080/a and !***");
  CHECK(cut("see http://host:80 and !hunt") == "see http://host:80 and !***");
}

TEST_CASE("secret names are distinguished from other names") {
  for (const char *name : {"password", "DB_PASSWORD", "x-api-key", "accessToken", "client_secret",
                           "Set-Cookie", "private.key", "token", "refresh_token"}) {
    CHECK(is_secret_name(name));
  }
  for (const char *name : {"progressToken", "nextPageToken", "tokens", "max_tokens", "path", "key",
                           "author", "pinned", ""}) {
    CHECK_FALSE(is_secret_name(name));
  }
}
