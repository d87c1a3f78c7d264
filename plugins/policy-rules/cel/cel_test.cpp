#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "cel/json_value.hpp"
#include "cel/program.hpp"

using namespace bulkhead::cel;

namespace {

Environment rules() {
  Environment environment;
  environment.declare("mcp.request.server_name", Kind::kString);
  environment.declare("mcp.request.tool_name", Kind::kString);
  environment.declare("mcp.request.arguments", Type::map(Kind::kString, Kind::kDyn));
  environment.declare("numbers", Type::list(Kind::kInt));
  environment.declare("when", Kind::kTimestamp);
  environment.refuse = [](std::string_view name) -> std::optional<std::string> {
    if (!name.starts_with("event.")) return std::nullopt;
    return "event is not for rules";
  };
  return environment;
}

struct Call {
  rapidjson::Document arguments;
  rapidjson::Document numbers;
  std::vector<Value> values;

  explicit Call(const char *json = "{}", const char *list = "[1, 2, 3]") {
    REQUIRE_FALSE(arguments.Parse(json).HasParseError());
    REQUIRE_FALSE(numbers.Parse(list).HasParseError());
    values = {Value::string("github"), Value::string("delete_repo"), json_value(arguments),
              json_value(numbers)};
  }
};

std::string fault_of(std::string_view source, bool must_be_bool = true) {
  const auto program = Program::compile(source, rules(), must_be_bool);
  return program ? "compiled" : program.error().to_string();
}

// Evaluates an expression. Returns "true", "false", or the error with its position.
std::string verdict(std::string_view source, const Call &call = Call(),
                    std::uint64_t budget = Program::kDefaultBudget) {
  const auto program = Program::compile(source, rules(), true);
  if (!program) return "refused " + program.error().to_string();
  Scratch scratch;
  const Value value = program->evaluate(call.values, scratch, budget);
  if (value.is_error()) return program->explain(value).to_string();
  REQUIRE(value.is(Kind::kBool));
  return value.is_true() ? "true" : "false";
}

// Returns the number of steps that the evaluation takes: the smallest budget that suffices.
std::uint64_t cost(std::string_view source, const Call &call) {
  const auto program = Program::compile(source, rules(), true);
  REQUIRE(program.has_value());
  Scratch scratch;
  const auto suffices = [&](std::uint64_t budget) {
    const Value value = program->evaluate(call.values, scratch, budget);
    return !value.is_error() ||
           std::string_view(value.error_text()) != "the evaluation exceeds its budget";
  };
  std::uint64_t too_small = 0, enough = 1;
  for (; !suffices(enough); enough *= 2) too_small = enough;
  while (too_small + 1 < enough) {
    const std::uint64_t middle = too_small + (enough - too_small) / 2;
    (suffices(middle) ? enough : too_small) = middle;
  }
  return enough;
}

}  // namespace

TEST_CASE("rule conditions are evaluated") {
  const Call call(
      R"({"path": "/etc/passwd", "count": 5, "tags": ["a", "b"], "deep": {"x": null}})");
  CHECK(
      verdict("mcp.request.server_name == 'github' && mcp.request.tool_name.startsWith('delete_')",
              call) == "true");
  CHECK(verdict("mcp.request.tool_name in ['a', 'delete_repo']", call) == "true");
  CHECK(verdict("mcp.request.arguments.path.matches('^/etc/')", call) == "true");
  CHECK(verdict("has(mcp.request.arguments.missing)", call) == "false");
  CHECK(verdict("has(mcp.request.arguments.deep.x)", call) == "true");
  CHECK(verdict("mcp.request.arguments.count > 4.5 && mcp.request.arguments['count'] == 5u",
                call) == "true");
  CHECK(verdict("mcp.request.arguments.tags.exists(t, t == 'b')", call) == "true");
  CHECK(verdict("'path' in mcp.request.arguments", call) == "true");
  CHECK(verdict("numbers.map(n, n * n).filter(n, n > 3) == [4, 9]", call) == "true");
}

TEST_CASE("an evaluation error has a position") {
  const Call call(R"({"path": "/etc/passwd"})");
  CHECK(verdict("mcp.request.arguments.nope == 1", call) == "1:22: no such key 'nope'");
  CHECK(verdict("true &&\n  1 / (size(numbers) - 3) == 1", call) == "2:5: division by zero");
  CHECK(verdict("mcp.request.arguments.path > 5", call) == "1:28: no such overload: string > int");
  CHECK(verdict("mcp.request.arguments.nope || true", call) == "true");
  CHECK(verdict("false && mcp.request.arguments.nope", call) == "false");
  CHECK(verdict("mcp.request.arguments.nope && false", call) == "false");
}

TEST_CASE("an error names only keys of the expression and types of values") {
  const Call call(R"({"n": 7, "s": "secret-value", "m": {"a": 1}, "l": [1]})");
  const auto said = [&](const std::string &rest) {
    const std::string text = verdict("mcp.request.arguments" + rest, call);
    CHECK(text.find("secret") == std::string::npos);
    return text.substr(text.find(' ') + 1);
  };
  CHECK(said(".m.path.startsWith('/')") == "no such key 'path'");
  CHECK(said("['gone'] == 1") == "no such key 'gone'");
  CHECK(said("[mcp.request.arguments.s] == 1") == "no such key");
  CHECK(said(".s.path == 1") == "only maps have fields, not string");
  CHECK(said(".n + mcp.request.arguments.s == 1") == "no such overload: int + string");
  CHECK(said(".n in mcp.request.arguments.s") == "no such overload: int in string");
  CHECK(said(".l[mcp.request.arguments.s] == 1") == "no such overload: list[string]");
  CHECK(said(".n.matches('x')") == "no such overload: int.matches(string)");
  CHECK(said(".n && true") == "expected a bool, found int");
  CHECK(said(".l.exists(x, x)") == "expected a bool, found int");
  CHECK(verdict("!mcp.request.arguments.s", call) == "1:1: expected a bool, found string");
  CHECK(verdict("-mcp.request.arguments.s == 1", call) == "1:1: no such overload: -string");
  CHECK(verdict("size(mcp.request.arguments.n) == 1", call) == "1:1: no such overload: size(int)");
  CHECK(said("['" + std::string(59, 'k') + "é" + std::string(40, 'k') + "'] == 1") ==
        "no such key '" + std::string(59, 'k') + "...'");
  CHECK(said("['a\\n\\x7fb'] == 1") == "no such key 'a??b'");
}

TEST_CASE("a variable may be missing") {
  CHECK(verdict("has(when) || true") == "refused 1:1: has() takes one field, as in has(a.b)");
  CHECK(verdict("when == timestamp(0)") == "1:1: this variable has no value in this call");
  Call call;
  call.values[1] = Value::absent();
  CHECK(verdict("has(mcp.request.tool_name)", call) == "false");
  CHECK(verdict("has(mcp.request.server_name)", call) == "true");
  CHECK(verdict("mcp.request.tool_name == ''", call) ==
        "1:12: this variable has no value in this call");
}

TEST_CASE("compilation errors have a position") {
  CHECK(fault_of("mcp.request.tool == 'x'")
            .starts_with("1:12: 'mcp.request.tool' is not declared; "
                         "known names: mcp.request.server_name, "));
  CHECK(fault_of("true && event.type == 'x'") == "1:14: event is not for rules");
  CHECK(fault_of("1 + 'a' == 2")
            .starts_with("1:3: '+' does not accept (int, string), only (int, int)"));
  CHECK(fault_of("mcp.request.tool_name.begins('x')") == "1:23: unknown method 'begins'");
  CHECK(fault_of("contains('a', 'b')") ==
        "1:1: unknown function 'contains'; it is a method: x.contains()");
  CHECK(fault_of("'a' == 1") == "1:5: string and int cannot be compared; convert one with dyn()");
  CHECK(fault_of("true &&") == "1:8: expected a value, found the end of the expression");
  CHECK(fault_of("true\n && 'é' @ 1") == "2:9: '@' is not valid in CEL");
  CHECK(fault_of("(true") == "1:6: expected ')', found the end of the expression");
  CHECK(fault_of("[1, 2") == "1:6: expected ',' or ']', found the end of the expression");
  CHECK(fault_of("'a") == "1:1: the string is not terminated");
  CHECK(fault_of("9223372036854775808 > 0") ==
        "1:1: the number exceeds the range of int (64 bits)");
  CHECK(fault_of("mcp.request.tool_name.matches('(')")
            .starts_with("1:31: invalid regular expression: "));
  CHECK(fault_of("1") == "1:1: a condition must be a bool, not int");
  CHECK(fault_of("if == 1") == "1:1: 'if' is a reserved word");
  CHECK(fault_of("numbers.all(1, true)") ==
        "1:13: the first argument of a macro must be the name of its variable");
  CHECK(fault_of("mcp.request.tool_name.x") == "1:22: string has no field 'x'");
  CHECK(fault_of("has(mcp.request.tool_name.x)") == "1:1: string has no field 'x'");
}

TEST_CASE("compilation is limited") {
  CHECK(fault_of("'" + std::string(70000, 'x') + "' == ''") ==
        "1:65537: the expression is longer than 64 KiB");
  CHECK(fault_of(std::string(150, '(') + "true" + std::string(150, ')')) ==
        "1:101: the expression has more than 100 nested brackets");
  CHECK(fault_of(std::string(101, '!') + "true")
            .ends_with("more than 100 operators before an operand"));
  std::string sum = "1";
  for (int i = 0; i < 300; ++i) sum += "+1";
  CHECK(fault_of(sum + " == 1").ends_with("the expression has more than 200 nested operations"));
  std::string many = "[";
  for (int i = 0; i < 20000; ++i) many += "1,";
  CHECK(fault_of(many + "] == []").ends_with("the expression has more than 16384 nodes"));
  std::string alternatives = "false";
  for (int i = 0; i < 1000; ++i) alternatives += "||false";
  CHECK(fault_of(alternatives) == "compiled");
  std::string macros;
  for (int i = 0; i < 17; ++i) macros += "numbers.all(n" + std::to_string(i) + ", ";
  CHECK(fault_of(macros + "true" + std::string(17, ')')).ends_with("more than 16 nested macros"));
  CHECK(fault_of("'a'.matches('" + std::string(5000, 'a') + "')")
            .ends_with("the regular expression is longer than 4096 bytes"));
  CHECK(fault_of("'a'.matches('((a{100}){100}){10}')").find("invalid regular expression") !=
        std::string::npos);
}

TEST_CASE("|| does not hide limits that are exceeded during evaluation") {
  const Call call("{}", "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]");
  const std::string loop =
      "numbers.all(a, numbers.all(b, numbers.all(c, numbers.all(d, numbers.all(e, a + b > 0)))))";
  CHECK(verdict(loop, call).ends_with("the evaluation exceeds its budget"));
  CHECK(verdict(loop + " || true", call).ends_with("the evaluation exceeds its budget"));
  CHECK(verdict("numbers.all(a, a > 0)", call, 1000) == "true");
  // Repeated doubling of a string reaches the memory limit before the budget is exhausted.
  std::string text = "mcp.request.tool_name";
  for (int i = 0; i < 30; ++i) text = "[" + text + "].map(x, x + x)[0]";
  CHECK(verdict(text + " == ''", call, 100'000'000).ends_with("exceeds its memory limit"));
}

TEST_CASE("a regular expression may come from a variable") {
  CHECK(verdict("'abc'.matches(mcp.request.arguments.re)", Call(R"({"re": "b"})")) == "true");
  CHECK(verdict("'abc'.matches(mcp.request.arguments.re)", Call(R"({"re": "("})"))
            .ends_with("invalid regular expression"));
  const Call call(("{\"re\": \"" + std::string(300, 'a') + "\"}").c_str());
  CHECK(verdict("'abc'.matches(mcp.request.arguments.re)", call)
            .ends_with("the regular expression is too long"));
}

TEST_CASE("values of the wrong type are an error") {
  Call call;
  call.values[0] = Value::of(std::int64_t{7});
  CHECK(verdict("mcp.request.server_name.startsWith('g')", call) ==
        "1:25: no such overload: int.startsWith(string)");
}

TEST_CASE("JSON values are read without copying them") {
  const Call call(R"({"i": -1, "u": 18446744073709551615, "d": 1.5, "l": [1, [2]], "b": false})");
  CHECK(verdict("type(mcp.request.arguments.i) == int", call) == "true");
  CHECK(verdict("type(mcp.request.arguments.u) == uint", call) == "true");
  CHECK(verdict("type(mcp.request.arguments.d) == double", call) == "true");
  CHECK(verdict("mcp.request.arguments.l == [1, [2]]", call) == "true");
  CHECK(verdict("mcp.request.arguments == {'b': false, 'd': 1.5, 'i': -1, 'l': [1, [2]], 'u': "
                "18446744073709551615u}",
                call) == "true");
  CHECK(verdict("mcp.request.arguments.all(key, size(key) == 1)", call) == "true");
}

TEST_CASE("demands of a program are found for the rule index") {
  const auto compiled = [](std::string_view text) {
    auto program = Program::compile(text, rules(), true);
    REQUIRE(program.has_value());
    return std::move(*program);
  };
  const auto demands = [&](std::string_view text) {
    std::string out;
    const Program program = compiled(text);
    for (const Program::Demand &demand : program.demands()) {
      out += std::to_string(demand.slot) + (demand.prefix ? "^" : ":");
      for (const std::string_view one : demand.texts) out += std::string(one) + ",";
    }
    return out;
  };
  CHECK(demands("mcp.request.server_name == 'a'") == "0:a,");
  CHECK(demands("'a' == mcp.request.server_name && (mcp.request.tool_name in ['b', 'c'])") ==
        "0:a,1:b,c,");
  CHECK(demands("mcp.request.server_name == 'a' && has(mcp.request.arguments.x) && "
                "mcp.request.tool_name == 'b'") == "0:a,1:b,");
  // These expressions have no demands, because they can be true even if the comparison is false.
  CHECK(demands("mcp.request.server_name == 'a' || mcp.request.tool_name == 'b'").empty());
  CHECK(demands("!(mcp.request.server_name == 'a')").empty());
  CHECK(demands("mcp.request.server_name != 'a'").empty());
  CHECK(demands("mcp.request.server_name == mcp.request.tool_name").empty());
  CHECK(demands("(mcp.request.server_name == 'a') == false").empty());
  CHECK(demands("mcp.request.server_name in []") == "0:");
  CHECK(demands("mcp.request.tool_name.startsWith('x') && mcp.request.server_name == 'a'") ==
        "1^x,0:a,");
  CHECK(demands("'x'.startsWith(mcp.request.tool_name)").empty());
  CHECK(demands("mcp.request.tool_name.endsWith('x')").empty());
  CHECK(demands("!mcp.request.tool_name.startsWith('x')").empty());
  CHECK(compiled("mcp.request.tool_name == 'a'").reads() == 2);
  CHECK(compiled("has(mcp.request.arguments.a)").reads() == 4);
  CHECK(compiled("numbers.all(n, n > 0) || true").reads() == 8);
  CHECK(compiled("1 == 1").reads() == 0);
}

TEST_CASE("an unknown variable affects only the operators that use it") {
  Call call;
  call.values[2] = Value::error("not known");
  CHECK(verdict("has(mcp.request.arguments)", call).ends_with("not known"));
  CHECK(verdict("has(mcp.request.arguments.x)", call).ends_with("not known"));
  CHECK(verdict("false && has(mcp.request.arguments)", call) == "false");
  CHECK(verdict("mcp.request.arguments.exists(k, k == 'a') || true", call) == "true");
}

TEST_CASE("conversions are charged for the bytes that they read") {
  constexpr std::size_t size = 64'000;
  const auto charged = [](const std::string &conversion, const std::string &text) {
    return cost(
        conversion + "(mcp.request.arguments.n) != " + conversion + "(mcp.request.arguments.n)",
        Call(("{\"n\":\"" + text + "\"}").c_str()));
  };
  const std::string digits(size, '1');
  std::string pieces;
  while (pieces.size() < size) pieces += "0s";
  CHECK(charged("int", digits) > size / 4);
  CHECK(charged("uint", digits) > size / 4);
  CHECK(charged("double", "0." + digits) > size / 4);
  CHECK(charged("timestamp", "2026-11-22T06:00:00." + digits + "Z") > size / 4);
  CHECK(charged("duration", pieces) > size);
  CHECK(charged("int", "12") < 20);
  // The loop must exhaust the budget even though the string is not a valid number.
  const Call loop(("{\"n\":\"0x" + digits + "\",\"l\":[1,2,3,4,5,6,7,8,9,10]}").c_str());
  CHECK(verdict("mcp.request.arguments.l.exists(x, int(mcp.request.arguments.n) < 0)", loop)
            .ends_with("the evaluation exceeds its budget"));
}

TEST_CASE("lookups are charged for the bytes of keys that have the same length") {
  constexpr std::size_t keys = 100, size = 1'600;
  const std::string front(size - 3, 'k');
  std::string members, mixed;
  for (std::size_t i = 0; i < keys; ++i) {
    members += (i ? ",\"" : "\"") + front + std::to_string(100 + i) + "\":1";
    mixed += (i ? ",\"" : "\"") + std::string(i + 1, 'k') + "\":1";
  }
  const std::string wanted = ",\"wanted\":\"" + front + "999\"}";
  const Call same(("{\"m\":{" + members + "},\"o\":{" + members + "}" + wanted).c_str());
  const Call differ(("{\"m\":{" + mixed + "}" + wanted).c_str());
  constexpr std::uint64_t walk = keys / 4, all = keys * (size / 16);
  for (const std::string source : {"mcp.request.arguments.wanted in mcp.request.arguments.m",
                                   "mcp.request.arguments.m[mcp.request.arguments.wanted] == 1"}) {
    INFO(source);
    CHECK(cost(source, same) >= all + walk);
    CHECK(cost(source, differ) >= walk);
    CHECK(cost(source, differ) < walk + 100);
  }
  CHECK(cost("has(mcp.request.arguments.m." + front + "999)", same) >= all + walk);
  CHECK(cost("mcp.request.arguments.m." + front + "999 == 1", same) >= all + walk);
  // On average, a lookup compares half of the keys.
  CHECK(cost("mcp.request.arguments.m == mcp.request.arguments.o", same) >= all * keys / 2);
  CHECK(cost("mcp.request.arguments.m.exists(k, k in {mcp.request.arguments.wanted: 1})", same) >=
        all);
}

TEST_CASE("matching a pattern from a variable is charged by the pattern size for each byte") {
  const std::string text(4'000, 'a');
  const auto charged = [&](const std::string &expression) {
    return cost("mcp.request.arguments.t.matches(mcp.request.arguments.e)",
                Call(("{\"t\":\"" + text + "\",\"e\":\"" + expression + "\"}").c_str()));
  };
  CHECK(charged("ab") < 3'000);
  CHECK(charged("(b?){500}b{500}") > text.size());
  // The charge depends on the compiled size of the pattern, not on its length.
  CHECK(charged(R"((?i)\\pL\\pL\\pL\\pL)") > 10'000);
  CHECK(charged(R"(\\pL{1000})") > 20'000);
}
