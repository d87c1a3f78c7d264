#include "plugin/config_schema.hpp"

#include <catch2/catch.hpp>
#include <string>

namespace bulkhead {
namespace {

using Catch::Contains;

constexpr std::string_view schema = R"({
  "type":"object","additionalProperties":false,"required":["path"],
  "properties":{
    "path":{"type":"string","minLength":1},
    "limits":{"type":"object","additionalProperties":false,
      "properties":{"bytes":{"type":"integer","minimum":1,"maximum":1000}}},
    "mode":{"enum":["read","write"]},
    "list":{"type":"array","items":{"type":"string"},"maxItems":2},
    "token":{"type":"string","pattern":"^[a-z]+$"}
  }})";

std::string why(std::string_view config, std::string_view with = schema) {
  const auto checked = check_config(with, config);
  return checked ? std::string() : checked.error().text;
}

TEST_CASE("a valid configuration is accepted") {
  CHECK(why(R"({"path":"/x"})").empty());
  CHECK(why(R"({"path":"/x","limits":{"bytes":1000},"mode":"read","list":["a","b"],"token":"abc"})")
            .empty());
  CHECK(why(R"({"anything":[1e300,{"deep":null}]})", "").empty());
}

TEST_CASE("an error contains the path and the allowed values") {
  CHECK(why(R"({})") == "config: required keys are missing: path");
  constexpr std::string_view two = R"({"properties":{"a":{"required":["b","c","d"]}}})";
  CHECK(why(R"({"a":{"c":1}})", two) == "config/a: required keys are missing: b, d");
  CHECK_THAT(why(R"({"path":1})"), Contains("config/path: must match type \"string\""));
  CHECK_THAT(why(R"({"path":""})"), Contains("config/path: must match minLength 1"));
  CHECK_THAT(why(R"({"path":"x","limits":{"bytes":1001}})"),
             Contains("config/limits/bytes: must match maximum 1000"));
  CHECK_THAT(why(R"({"path":"x","mode":"append"})"),
             Contains("config/mode: must match enum [\"read\",\"write\"]"));
  CHECK_THAT(why(R"({"path":"x","list":["a","b","c"]})"),
             Contains("config/list: must match maxItems"));
  CHECK_THAT(why(R"({"path":"x","pth":"y"})"),
             Contains("config/pth: unknown key; known keys: path, limits, mode, list, token"));
  CHECK_THAT(why(R"({"path":"x","limits":{"byte":1}})"),
             Contains("config/limits/byte: unknown key; known keys: bytes"));
}

TEST_CASE("the profile's rules are rejected if the plugin's schema does not list them") {
  const std::string rules = R"({"profile_rules":[]})";
  const auto refused = Contains("does not evaluate them: use \"policy-rules\"");
  CHECK_THAT(why(rules, R"({"type":"object","additionalProperties":false})"), refused);
  CHECK_THAT(why(rules, R"({"type":"object"})"), refused);
  CHECK_THAT(why(rules, ""), refused);
  CHECK(why(rules, R"({"properties":{"profile_rules":{"type":"array"}}})").empty());
  const auto faults =
      config_faults(R"({"properties":{"a":{"type":"string"}}})", R"({"a":1,"profile_rules":[]})");
  REQUIRE(faults.size() == 2);
  CHECK(faults[0].path.empty());
  CHECK_THAT(faults[0].what, refused);
  CHECK(faults[1].path == "a");
}

TEST_CASE("errors never contain the invalid value") {
  CHECK_THAT(why(R"({"path":"x","token":"S3CR3T"})"), !Contains("S3CR3T"));
}

TEST_CASE("text that is not an object, not JSON, too large or too complex is rejected") {
  CHECK_THAT(why("[]"), Contains("not a JSON object"));
  CHECK_THAT(why("{\"path\":\"x\"} x"), Contains("not a JSON object"));
  CHECK_THAT(why("{\"path\":\"\xff\"}"), Contains("not a JSON object"));
  CHECK_THAT(why("", ""), Contains("not a JSON object"));
  CHECK_THAT(why("{\"n\":1e-2147483647}", ""), Contains("exponent"));
  CHECK_THAT(why("{\"n\":" + std::string(65, '1') + "}", ""), Contains("64 characters"));
  CHECK(
      why("{\"n\":\"" + std::string(65, '1') + "\\\"" + std::string(65, '1') + "\"}", "").empty());
  CHECK_THAT(why("{\"a\":\"" + std::string(1u << 20, 'x') + "\"}", ""), Contains("1 MiB"));
  CHECK(check_config("{", "{}").error().code == BH_E_ABI);
}

TEST_CASE("nesting is limited") {
  const auto nested = [](std::size_t n) {
    return "{\"a\":" + std::string(n, '[') + std::string(n, ']') + "}";
  };
  CHECK(why(nested(63), R"({"type":"object"})").empty());
  CHECK_THAT(why(nested(64), ""), Contains("more than 64 levels deep"));
  CHECK_THAT(why(nested(400'000), ""), Contains("more than 64 levels deep"));
}

TEST_CASE("the nesting of a schema is limited, and references in it may be cyclic") {
  const auto nested = [](std::size_t n) {
    std::string all;
    for (std::size_t i = 0; i < n; ++i) all += "{\"not\":";
    return all + "{}" + std::string(n, '}');
  };
  CHECK(why("{}", nested(62)).empty());
  for (const std::size_t n : {64, 200'000}) {
    const auto checked = check_config(nested(n), "{}");
    REQUIRE_FALSE(checked.has_value());
    CHECK(checked.error().code == BH_E_ABI);
    CHECK_THAT(checked.error().text, Contains("more than 64 levels deep"));
    CHECK(config_faults(nested(n), "{}").empty());
  }
  CHECK(why(R"({"a":{"a":{}}})", R"({"type":"object","properties":{"a":{"$ref":"#"}}})").empty());
}

}  // namespace
}  // namespace bulkhead

namespace {

std::string faults_of(std::string_view schema, std::string_view config) {
  std::string all;
  for (const bulkhead::ConfigFault &fault : bulkhead::config_faults(schema, config)) {
    all += fault.path + ": " + fault.what + "\n";
  }
  return all;
}

}  // namespace

TEST_CASE("all errors are found, each with its path") {
  constexpr std::string_view wanted = R"({"type":"object","additionalProperties":false,
    "required":["name","size"],"properties":{
    "name":{"type":"string"}, "size":{"type":"integer","minimum":1},
    "listen":{"type":"string","pattern":"^[0-9]+$","description":"a port"},
    "list":{"type":"array","items":{"type":"object","additionalProperties":false,
      "required":["id"],"properties":{"id":{"type":"string"}}}}}})";
  CHECK(faults_of(wanted, R"({"name":"x","size":1,"listen":"1","list":[{"id":"a"}]})").empty());
  CHECK(faults_of(wanted,
                  R"({"size":0,"bogus":1,"worse":2,"listen":"x","list":[{"id":"a"},{"id":1}]})") ==
        "size: must match minimum 1\n"
        "bogus: unknown key; known keys: name, size, listen, list\n"
        "worse: unknown key; known keys: name, size, listen, list\n"
        "listen: must be a port\n"
        "list[1].id: must match type \"string\"\n"
        "name: is missing; it is required\n");
  CHECK(faults_of(wanted, R"({"name":1,"size":2})") == "name: must match type \"string\"\n");
  CHECK(faults_of(wanted, R"({"name":"x","size":2,"list":[{}]})") ==
        "list[0].id: is missing; it is required\n");
}

TEST_CASE("the search for errors terminates for any configuration") {
  std::string many = "{";
  for (int i = 0; i < 500; ++i) many += (i == 0 ? "\"k" : ",\"k") + std::to_string(i) + "\":1";
  CHECK(bulkhead::config_faults(R"({"type":"object","additionalProperties":false})", many + "}")
            .size() == 64);
  CHECK(bulkhead::config_faults(R"({"type":"object","minProperties":3})", "{}").size() == 1);
  CHECK(bulkhead::config_faults(R"({"type":"object"})", "[1]").size() == 1);
  CHECK(bulkhead::config_faults("{", "{}").empty());
  CHECK(bulkhead::config_faults("", R"({"a":1})").empty());
}
