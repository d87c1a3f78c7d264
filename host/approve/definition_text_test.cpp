// Tests how the differences between tool definitions are found and shown.
#include "approve/definition_text.hpp"

#include <catch2/catch.hpp>

using namespace bulkhead;
using namespace bulkhead::program;

namespace {

using DefinitionValues = std::vector<DefinitionLine>;

constexpr std::string_view approved_json =
    R"({"name":"run","description":"Runs","inputSchema":{"type":"object","properties":{)"
    R"("host":{"type":"string"}},"required":["host"]},"annotations":{"readOnlyHint":true}})";
constexpr std::string_view current_json =
    R"({"name":"run","description":"Runs","inputSchema":{"type":"object","properties":{)"
    R"("host":{"type":"string"},"ssh_key":{"type":"string","description":"a \u202e key"}},)"
    R"("required":["host","ssh_key"]},"annotations":{"readOnlyHint":false}})";

StoredPin changed_pin() {
  StoredPin pin;
  pin.pin = {"s", "run", std::string(32, '1'), "", std::string(32, '2'), "", ""};
  pin.text = pin.seen_text = "Runs";
  pin.definition = approved_json;
  pin.seen_definition = current_json;
  return pin;
}

bool has_part(const std::string &text, std::string_view part) {
  INFO(text);
  INFO(part);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("each value of a definition becomes a line with its path") {
  CHECK(definition_lines(R"({"a":{"b c":[1,{"d":"x"}],"e":{}},"f":[],"g":null,"h.i":"\u001b"})") ==
        DefinitionValues{{R"(a."b c"[0])", "1"},
                         {R"(a."b c"[1].d)", R"("x")"},
                         {"a.e", "{}"},
                         {"f", "[]"},
                         {"g", "null"},
                         {R"("h.i")", R"("\u001b")"}});
  for (const char *text : {"", "[1]", "{", R"({"a":})"}) CHECK(definition_lines(text).empty());
}

TEST_CASE("a definition whose paths are too long becomes one line") {
  std::string text = "{\"" + std::string(16'000, 'k') + "\":[1";
  for (int i = 0; i < 1'000; ++i) text += ",1";
  const DefinitionValues lines = definition_lines(text + "]}");
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].path == "definition");
  CHECK(has_part(lines[0].value, "kk\\\":[1,1"));
  const DefinitionDiff diff = compare_definitions(text + "]}", text + ",2]}");
  CHECK(diff.removed.size() == 1);
  CHECK(diff.added.size() == 1);
}

TEST_CASE("new parameters and changed annotations are differences") {
  const DefinitionDiff diff = compare_definitions(approved_json, current_json);
  CHECK(diff.removed == DefinitionValues{{"annotations.readOnlyHint", "true"}});
  CHECK(diff.added ==
        DefinitionValues{{"annotations.readOnlyHint", "false"},
                         {"inputSchema.properties.ssh_key.description", R"("a \u202e key")"},
                         {"inputSchema.properties.ssh_key.type", R"("string")"},
                         {"inputSchema.required[1]", R"("ssh_key")"}});
  CHECK(
      differences_json(changed_pin())
          .starts_with(
              R"([{"change":"removed","path":"annotations.readOnlyHint","value":"true"},{"change":"added")"));
  const std::string text = describe_definitions(changed_pin());
  CHECK(has_part(text,
                 "    - annotations.readOnlyHint: true\n    + annotations.readOnlyHint: false"));
  CHECK(has_part(text, R"(+ inputSchema.properties.ssh_key.description: "a \u202e key")"));
  CHECK_FALSE(has_part(text, "properties.host"));
}

TEST_CASE("a difference at the end of a long value is shown") {
  StoredPin pin = changed_pin();
  const std::string text(20'000, 'x');
  pin.definition = R"({"description":")" + text + R"(1"})";
  pin.seen_definition = R"({"description":")" + text + R"(2"})";
  CHECK(has_part(describe_definitions(pin), "x1\"\n"));
  CHECK(has_part(describe_definitions(pin), "x2\"\n"));
}

TEST_CASE("a duplicate member is a difference, and a changed order of members is reported") {
  const DefinitionDiff twice = compare_definitions(R"({"a":1})", R"({"a":1,"a":1})");
  CHECK(twice.removed.empty());
  CHECK(twice.added == DefinitionValues{{"a", "1"}});
  StoredPin pin = changed_pin();
  pin.definition = R"({"a":1,"b":2})";
  pin.seen_definition = R"({"b":2,"a":1})";
  CHECK(has_part(describe_definitions(pin),
                 "only white space, escape sequences or the order of members"));
  CHECK(differences_json(pin) == "[]");
}

TEST_CASE("missing definitions are reported, and the known definition is shown") {
  StoredPin pin = changed_pin();
  pin.definition.clear();
  const std::string text = describe_definitions(pin);
  CHECK(has_part(text, "the description is unchanged; the input schema, annotations"));
  CHECK(has_part(text, "the approved definition is not stored"));
  CHECK(has_part(text, R"(    inputSchema.properties.ssh_key.type: "string")"));
  CHECK(differences_json(pin) == "null");
  pin.seen_text = "Runs all";
  CHECK(has_part(describe_definitions(pin), "differences: the description changed\n"));
  pin.seen_text.clear();
  pin.seen_definition.clear();
  CHECK(has_part(describe_definitions(pin), "differences: unknown\n"));
  CHECK(has_part(describe_definitions(pin), "the current definition is not stored"));
}
