#include "mcp/param_headers.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "bulkhead/cpp/json_reader.hpp"
#include "bulkhead/cpp/messages.hpp"
#include "bulkhead/cpp/text.hpp"

using namespace bulkhead::mcp;

namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

std::string schema(const std::string &properties) {
  return R"({"type":"object","properties":{)" + properties + "}}";
}

ParamHeaders read(const std::string &text) {
  const auto result = read_param_headers(text);
  INFO(text);
  if (!result) FAIL(result.error().text);
  return *result;
}

std::string problem(const std::string &text) {
  const auto result = read_param_headers(text);
  return result ? "no problem" : result.error().text;
}

const ParamHeaders params = *read_param_headers(schema(R"(
    "region":{"type":"string","x-mcp-header":"Region"},
    "priority":{"type":"integer","x-mcp-header":"Priority"},
    "debug":{"type":"boolean","x-mcp-header":"Debug"},
    "query":{"type":"string"},
    "at":{"type":"object","properties":{
      "zone":{"type":"string","x-mcp-header":"Zone"},
      "deep":{"properties":{"zone":{"type":"string","x-mcp-header":"Deep"}}}}})"));

HeaderFault check(const std::string &arguments, const Pairs &pairs) {
  std::vector<bh_header> headers;
  for (const auto &[name, value] : pairs) headers.push_back({bh::str(name), bh::str(value)});
  return check_param_headers(params, arguments, headers).value_or(HeaderFault{});
}

Pairs composed(const std::string &arguments) {
  HeaderList list;
  REQUIRE_FALSE(add_param_headers(params, arguments, &list));
  REQUIRE(bh::check_headers(list.all(), nullptr) == BH_OK);
  Pairs out;
  for (const bh_header &header : list.all()) {
    out.emplace_back(bh::view(header.name), bh::view(header.value));
  }
  return out;
}

}  // namespace

TEST_CASE("x-mcp-header: names, paths and types of the annotated properties") {
  REQUIRE(params.size() == 5);
  const auto is = [](const ParamHeader &p, const char *header, std::vector<std::string> path,
                     ParamType type) {
    CHECK(p.header == header);
    CHECK(p.path == path);
    CHECK(p.type == type);
  };
  is(params[0], "Mcp-Param-Deep", {"at", "deep", "zone"}, ParamType::string);
  is(params[1], "Mcp-Param-Zone", {"at", "zone"}, ParamType::string);
  is(params[2], "Mcp-Param-Debug", {"debug"}, ParamType::boolean);
  is(params[3], "Mcp-Param-Priority", {"priority"}, ParamType::integer);
  is(params[4], "Mcp-Param-Region", {"region"}, ParamType::string);
  const ParamHeaders escaped = read(
      R"({"propert\u0069es":{"r\u00e9\"":{"x-mcp-h\u0065ader":"\u0052","type":"s\u0074ring"}}})");
  REQUIRE(escaped.size() == 1);
  is(escaped[0], "Mcp-Param-R", {"r\u00e9\""}, ParamType::string);
}

TEST_CASE("x-mcp-header: ignored in data and as a property name") {
  for (const char *text :
       {R"({"type":"object"})", R"({"properties":{"x-mcp-header":{"type":"string"}}})",
        R"({"properties":{"a":{"type":"string","default":{"x-mcp-header":"A"}}}})",
        R"({"properties":{"a":{"const":{"x-mcp-header":1},"enum":[{"x-mcp-header":""}]}}})",
        R"({"examples":[{"properties":{"a":{"x-mcp-header":"A"}}}]})",
        R"({"x-vendor":{"properties":{"a":{"x-mcp-header":"A"}}}})",
        R"({"properties":[{"x-mcp-header":"A"}]})", R"({"$defs":{"x-mcp-header":{}}})", "true",
        R"({"required":["x-mcp-header"],"description":"x-mcp-header"})"}) {
    INFO(text);
    CHECK(read(text).empty());
  }
}

TEST_CASE("x-mcp-header: an invalid annotation is reported with its property") {
  const auto of = [](const std::string &annotation, const std::string &type = R"("string")") {
    return problem(schema(R"("ok":{"type":"string","x-mcp-header":"Ok"},"bad":{"type":)" + type +
                          R"(,"x-mcp-header":)" + annotation + "}"));
  };
  CHECK(of(R"("Fine")") == "no problem");
  for (const char *bad : {R"("")", R"("My Region")", R"("Region:Primary")", R"("R\u00e9gion")",
                          R"("Region\t1")", R"("a\r\nb")", R"("a\u0000")", "\"(x)\"", "7", "null",
                          "true", R"(["Region"])", R"({"name":"Region"})"}) {
    INFO(bad);
    CHECK(of(bad) ==
          "x-mcp-header of property \"bad\" is not a valid header name (a token as in RFC 9110)");
  }
  for (const char *type : {R"("object")", R"("array")", R"("null")", R"("number")", R"("String")",
                           R"(["string","null"])", "null", R"({"type":"string"})"}) {
    INFO(type);
    CHECK(of(R"("Region")", type).find("requires a property of type") != std::string::npos);
  }
  CHECK(problem(schema(R"("a":{"x-mcp-header":"A"})")).find("type") != std::string::npos);
  CHECK(of(R"("ok")") ==
        "x-mcp-header of property \"bad\" has the same value as x-mcp-header of "
        "property \"ok\"");
  CHECK(of('"' + std::string(max_param_header_name, 'x') + '"') == "no problem");
  CHECK(of('"' + std::string(max_param_header_name + 1, 'x') + '"').find("128") !=
        std::string::npos);
}

TEST_CASE("x-mcp-header: the path to an annotation must consist of properties") {
  const std::string annotated = R"({"type":"string","x-mcp-header":"A"})";
  const std::string in = R"({"properties":{"a":)" + annotated + "}}";
  CHECK(problem(in) == "no problem");
  CHECK(problem(annotated).find("reachable through \"properties\" only") != std::string::npos);
  for (const char *keyword :
       {"items", "additionalProperties", "not", "if", "then", "else", "contains",
        "unevaluatedProperties", "unevaluatedItems", "propertyNames", "additionalItems"}) {
    const std::string single = std::string("{\"") + keyword + "\":";
    INFO(keyword);
    for (const std::string &part : {annotated, in}) {
      CHECK(problem(single + part + "}").find("reachable through") != std::string::npos);
      CHECK(problem(R"({"properties":{"b":)" + single + part + "}}}").find("reachable through") !=
            std::string::npos);
    }
  }
  for (const char *keyword : {"oneOf", "anyOf", "allOf", "prefixItems", "items"}) {
    INFO(keyword);
    CHECK(
        problem(std::string("{\"") + keyword + "\":[true," + in + "]}").find("reachable through") !=
        std::string::npos);
  }
  for (const char *keyword :
       {"$defs", "definitions", "patternProperties", "dependentSchemas", "dependencies"}) {
    INFO(keyword);
    CHECK(problem(std::string("{\"") + keyword + "\":{\"k\":" + annotated + "}}")
              .find("reachable through") != std::string::npos);
  }
}

TEST_CASE("x-mcp-header: limits") {
  std::string many;
  for (std::size_t i = 0; i < max_param_headers; ++i) {
    const std::string n = std::to_string(i);
    many += '"' + n + R"(":{"type":"string","x-mcp-header":"H)" + n + R"("},)";
  }
  CHECK(read(schema(many + R"("last":{"type":"string"})")).size() == max_param_headers);
  CHECK(problem(schema(many + R"("last":{"type":"string","x-mcp-header":"L"})"))
            .find("exceeds the limit of") != std::string::npos);

  const auto nested = [](std::size_t levels) {
    std::string text;
    for (std::size_t i = 0; i < levels; ++i) text += R"({"properties":{"a":)";
    text += R"({"type":"string","x-mcp-header":"A"})";
    return text.append(2 * levels, '}');
  };
  CHECK(read(nested(63)).at(0).path.size() == 63);
  CHECK(problem(nested(64)).find("128 levels") != std::string::npos);
  CHECK(problem(nested(100000)).find("128 levels") != std::string::npos);
  for (const char *broken : {"", "{", R"({"a":})", "{} x", "\xFF", R"({"properties":{"a":{)"}) {
    CHECK(problem(broken).find("not valid JSON") != std::string::npos);
  }
  // An error message is a single line and contains only part of a long name.
  const std::string name = "a\\n" + std::string(1000, 'x');
  const std::string shown = problem(schema('"' + name + R"(":{"x-mcp-header":1})"));
  CHECK(shown.size() < 250);
  CHECK(shown.find('\n') == std::string::npos);
}

TEST_CASE("x-mcp-header: duplicate members make annotations ambiguous") {
  const char *one = R"("a":{"type":"string","x-mcp-header":"A"})";
  CHECK(problem(schema(std::string(one) + R"(,"a":{"type":"string","x-mcp-header":"B"})"))
            .find("duplicate members") != std::string::npos);
  CHECK(problem(schema(std::string(one) + R"(,"\u0061":{})")).find("duplicate members") !=
        std::string::npos);
  CHECK(problem(schema(R"("a":{"type":"string","x-mcp-header":"A","x-mcp-header":"B"})"))
            .find("duplicate members") != std::string::npos);
  CHECK(problem(schema(R"("a":{"type":"string"},"a":{"type":"string"})")) == "no problem");
}

TEST_CASE("Mcp-Param: composed from the arguments") {
  CHECK(composed("").empty());
  CHECK(composed("{}").empty());
  CHECK(composed("null").empty());
  CHECK(composed(R"(["region"])").empty());
  CHECK(composed(R"({"region":"us-west1","priority":42,"debug":false,"query":"q"})") ==
        Pairs{{"Mcp-Param-Debug", "false"},
              {"Mcp-Param-Priority", "42"},
              {"Mcp-Param-Region", "us-west1"}});
  CHECK(composed(R"({"at":{"deep":{"zone":"d"},"zone":"z"}})") ==
        Pairs{{"Mcp-Param-Deep", "d"}, {"Mcp-Param-Zone", "z"}});
  CHECK(composed(R"({"region":null,"priority":{"region":"x"},"debug":[true],"at":"x"})").empty());
  CHECK(composed(R"({"x":{"region":"no"},"y":[{"region":"no"}],"zone":"no"})").empty());
  CHECK(composed(R"({"at":[{"zone":"no"}],"deep":{"zone":"no"}})").empty());
  CHECK(composed(R"({"at":{"other":{"zone":"no"},"zone":"z"},"region":"r"})") ==
        Pairs{{"Mcp-Param-Zone", "z"}, {"Mcp-Param-Region", "r"}});
  CHECK(composed(R"({"\u0072egion":"\u4e16"})") == Pairs{{"Mcp-Param-Region", "=?base64?5LiW?="}});
  CHECK(composed(R"({"region":""})") == Pairs{{"Mcp-Param-Region",
                                               "=?base64?"
                                               "?="}});
  CHECK(composed(R"({"region":"a\r\nMcp-Name: x"})")[0].second.starts_with("=?base64?"));
  const auto priority = [](const std::string &number) {
    const Pairs pairs = composed(R"({"priority":)" + number + "}");
    return pairs.empty() ? std::string() : pairs[0].second;
  };
  CHECK(priority("-7") == "-7");
  CHECK(priority("4.2e1") == "42");
  CHECK(priority("42.0") == "42");
  CHECK(priority("-0") == "0");
  CHECK(priority("9007199254740991") == "9007199254740991");
  CHECK(priority("9007199254740992").empty());
  CHECK(priority("1e400").empty());
  CHECK(priority("3.5") == "3.5");
}

TEST_CASE("Mcp-Param: composed headers are accepted, and missing or changed headers are not") {
  for (const char *arguments :
       {"", "{}", R"({"region":"us-west1","priority":42,"debug":false,"query":"q"})",
        R"({"at":{"deep":{"zone":"\u4e16"},"zone":" z "},"debug":true})",
        R"({"region":"=?base64?eA==?=","priority":-1.0e3})", R"({"region":""})",
        R"({"region":null,"priority":1.5})"}) {
    INFO(arguments);
    const Pairs pairs = composed(arguments);
    CHECK(check(arguments, pairs).header.empty());
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      Pairs without = pairs;
      without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
      CHECK(check(arguments, without).header == pairs[i].first);
      Pairs other = pairs;
      other[i].second = "x";
      CHECK(check(arguments, other).header == pairs[i].first);
      Pairs doubled = pairs;
      doubled.emplace_back(bh::lowered(pairs[i].first), pairs[i].second);
      CHECK(check(arguments, doubled).header == pairs[i].first);
    }
  }
}

TEST_CASE("Mcp-Param: numbers are compared by value, and other arguments as text") {
  const auto priority = [](const char *argument, const char *header) {
    return check(std::string(R"({"priority":)") + argument + "}", {{"mcp-param-priority", header}})
        .header.empty();
  };
  CHECK(priority("42", "42"));
  CHECK(priority("42", " 42.0 "));
  CHECK(priority("42.0", "42"));
  CHECK(priority("4.2e1", "42"));
  CHECK(priority("42", "=?base64?NDI=?="));
  CHECK(priority("-0", "0"));
  CHECK(priority("9007199254740993", "9007199254740993"));
  CHECK(check(R"({"priority":9007199254740993})", {}).header.empty());
  for (const char *bad :
       {"43", "-42", "", "0x2a", "42 ,42", "+42", "4.2", "42x", "true", "=?base64?NDI?="}) {
    INFO(bad);
    CHECK_FALSE(priority("42", bad));
  }
  CHECK_FALSE(priority("9007199254740993", "9007199254740992"));  // equal as doubles
  CHECK_FALSE(priority("\"42\"", "42.0"));
  CHECK(priority("\"42\"", "42"));  // the server validates the type
  const auto debug = [](const char *argument, const char *header) {
    return check(std::string(R"({"debug":)") + argument + "}", {{"Mcp-Param-Debug", header}})
        .header.empty();
  };
  CHECK(debug("true", "true"));
  CHECK_FALSE(debug("true", "True"));
  CHECK_FALSE(debug("true", "1"));
  CHECK_FALSE(debug("true", "false"));
  CHECK_FALSE(check(R"({"region":"EU"})", {{"Mcp-Param-Region", "eu"}}).header.empty());
  CHECK(check(R"({"region":"\u0045U"})", {{"Mcp-Param-Region", "EU"}}).header.empty());
}

TEST_CASE("Mcp-Param: a header without an argument is rejected, and unknown headers are ignored") {
  const Pairs region = {{"Mcp-Param-Region", "eu"}};
  for (const char *arguments :
       {"", "{}", R"({"region":null})", R"({"region":{}})", R"({"region":["eu"]})",
        R"({"x":{"region":"eu"}})", R"(["region","eu"])", R"({"Region":"eu"})"}) {
    INFO(arguments);
    CHECK(check(arguments, region).text.find("must be absent") != std::string::npos);
  }
  CHECK(check("{}", {{"Mcp-Param-Unknown", "\xFF"}, {"Mcp-Name", "x"}}).header.empty());
  CHECK(check_param_headers({}, "{}", {}) == std::nullopt);
}

TEST_CASE("Mcp-Param: an argument with two values is a fault in every form") {
  for (const char *arguments :
       {R"({"region":"eu","region":"us"})", R"({"region":"eu","\u0072egion":"eu"})",
        R"({"region":null,"region":"eu"})", R"({"region":"eu","region":[]})",
        R"({"region":{},"region":"eu"})"}) {
    INFO(arguments);
    CHECK(check(arguments, {{"Mcp-Param-Region", "eu"}}).text.find("more than once") !=
          std::string::npos);
    CHECK(check(arguments, {{"Mcp-Param-Region", "us"}}).header == "Mcp-Param-Region");
    HeaderList list;
    CHECK(add_param_headers(params, arguments, &list));
  }
  // Some parsers use only the second `at`.
  CHECK(check(R"({"at":{"zone":"z"},"at":{}})", {{"Mcp-Param-Zone", "z"}}).text.find("once") !=
        std::string::npos);
  // Arguments without an annotation are not checked.
  CHECK(check(R"({"query":1,"query":2})", {}).header.empty());
}

TEST_CASE("Mcp-Param: arguments beyond the depth limit, and texts without values") {
  const std::string deep = std::string(200, '[') + std::string(200, ']');
  CHECK(check(R"({"query":)" + deep + "}", {}).text.find("nested too deeply") != std::string::npos);
  const HeaderFault fault = check(R"({"region":"secret-a"})", {{"Mcp-Param-Region", "secret-b"}});
  CHECK(fault.text == "the header Mcp-Param-Region differs from params.arguments.region");
}

TEST_CASE("x-mcp-header: valid annotations stay") {
  for (const std::string text :
       {R"({"type":"object"})", R"({"properties":{"a":{"type":"string","x-mcp-header":"A"}}})",
        R"({"properties":{"x-mcp-header":{"type":"number"}}})",
        R"({"examples":[{"x-mcp-header":"a b"}],"a":1,"a":2})", "true", "[]"}) {
    INFO(text);
    CHECK_FALSE(without_invalid_param_headers(text).has_value());
  }
}

TEST_CASE("x-mcp-header: if an annotation is invalid, all are removed and all else stays") {
  const auto reduced = [](const std::string &text) {
    const auto out = without_invalid_param_headers(text);
    INFO(text);
    REQUIRE(out.has_value());
    REQUIRE(bh::json::valid(*out));
    CHECK(read(*out).empty());
    CHECK_FALSE(without_invalid_param_headers(*out).has_value());
    return *out;
  };
  CHECK(reduced(R"({"x-mcp-header":"A"})") == "{}");
  CHECK(reduced(R"({ "type" : "object", "x-mcp-header" : 7 , "a\u0041" : 1e400 })") ==
        R"({ "type" : "object", "a\u0041" : 1e400 })");
  // The last members of an object, with and without others in front.
  CHECK(reduced(R"({"a":1, "x-mcp-header":[1,{"x-mcp-header":"B"}] , "x-mcp-he\u0061der":{} })") ==
        R"({"a":1})");
}

TEST_CASE("x-mcp-header: removed wherever it is an annotation, and kept in data") {
  const std::string good = R"("x-mcp-header":"Good")", bad = R"("x-mcp-header":"b a d")";
  const auto text = [](const std::string &first, const std::string &second) {
    return R"({"properties":{"a":{"type":"string")" + first +
           R"(,"default":{"x-mcp-header":"data"}},"b":{"items":{"type":"number")" + second +
           R"(}}},"examples":["x-mcp-header",{"x-mcp-header":"a b"}]})";
  };
  const std::string plain = text({}, {});
  CHECK(without_invalid_param_headers(text("," + good, "," + bad)) == plain);
  CHECK(without_invalid_param_headers(text("," + bad, {})) == plain);
  CHECK(without_invalid_param_headers(text({}, "," + good)) == plain);  // not reachable
  CHECK_FALSE(without_invalid_param_headers(text("," + good, {})).has_value());
  const std::string twice = R"("properties":{"a":{"type":"string",)" + good + "}}";
  CHECK(without_invalid_param_headers("{" + twice + R"(,"d":1,"d":2})") ==
        R"({"properties":{"a":{"type":"string"}},"d":1,"d":2})");
}
