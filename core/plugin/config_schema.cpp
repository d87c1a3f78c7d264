#include "plugin/config_schema.hpp"

#include <rapidjson/document.h>
#include <rapidjson/pointer.h>
#include <rapidjson/schema.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <cstring>
#include <string>

#include "plugin/text.hpp"

namespace bulkhead {
namespace {

constexpr std::size_t max_config_bytes = 1u << 20;
constexpr std::size_t max_number_length = 64;
constexpr std::size_t max_exponent_digits = 4;
constexpr std::size_t max_depth = 64;
constexpr unsigned parse_flags =
    rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag;

bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}

// What is refused before RapidJSON sees it: numbers beyond any use, because 1.1.0 computes
// exponents in an int that can overflow (CVE-2024-38517), and deep nesting, because its validator
// looks at every open level for every value. Null: nothing.
const char *beyond_bounds(std::string_view json) noexcept {
  bool in_string = false, exponent = false;
  std::size_t length = 0, digits = 0, depth = 0;  // of the number that goes on here, and of nesting
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (is_digit(c) || (length > 0 && c != '\0' && std::strchr(".eE+-", c) != nullptr)) {
      exponent = exponent || c == 'e' || c == 'E';
      if (exponent && is_digit(c)) ++digits;
      if (++length > max_number_length) return "a number has more than 64 characters";
      if (digits > max_exponent_digits) return "a number has more than 4 exponent digits";
    } else {
      in_string = c == '"';
      exponent = false;
      length = digits = 0;
      if ((c == '{' || c == '[') && ++depth > max_depth) return "it nests deeper than 64 levels";
      if ((c == '}' || c == ']') && depth > 0) --depth;
    }
  }
  return nullptr;
}

std::string text_of(const rapidjson::Value &value) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  value.Accept(writer);
  return clean_text({buffer.GetString(), buffer.GetSize()}, 200);
}

template <class Pointer>
std::string text_of(const Pointer &pointer) {
  rapidjson::StringBuffer buffer;
  pointer.Stringify(buffer);
  return clean_text({buffer.GetString(), buffer.GetSize()}, 200);
}

// The members that a schema knows, for people.
std::string known_members(const rapidjson::Value *schema) {
  std::string known;
  if (schema != nullptr && schema->IsObject()) {
    const auto properties = schema->FindMember("properties");
    if (properties != schema->MemberEnd() && properties->value.IsObject()) {
      for (const auto &member : properties->value.GetObject()) {
        known += (known.empty() ? "" : ", ") + std::string(member.name.GetString());
      }
    }
  }
  return known.empty() ? "none" : clean_text(known, 500);
}

std::string explain(const rapidjson::SchemaValidator &validator,
                    const rapidjson::Document &schema) {
  const std::string keyword = validator.GetInvalidSchemaKeyword();
  const std::string where = "config" + text_of(validator.GetInvalidDocumentPointer());
  const rapidjson::Value *rule = validator.GetInvalidSchemaPointer().Get(schema);
  if (keyword == "additionalProperties") {
    return where + ": is unknown here; known are " + known_members(rule);
  }
  std::string what = where + ": must match " + keyword;
  if (rule != nullptr && rule->IsObject() && rule->HasMember(keyword.c_str())) {
    what += " " + text_of((*rule)[keyword.c_str()]);
  }
  return what;
}

}  // namespace

Result<void> check_config(std::string_view schema_json, std::string_view config_json) {
  if (config_json.size() > max_config_bytes) {
    return fail(BH_E_LIMIT, "config: is larger than 1 MiB");
  }
  if (const char *what = beyond_bounds(config_json); what != nullptr) {
    return fail(BH_E_LIMIT, std::string("config: ") + what);
  }
  rapidjson::Document config;
  config.Parse<parse_flags>(config_json.data(), config_json.size());
  if (config.HasParseError() || !config.IsObject()) {
    return fail(BH_E_INVALID, "config: is not a JSON object");
  }
  if (schema_json.empty()) return {};
  rapidjson::Document schema;
  schema.Parse<parse_flags>(schema_json.data(), schema_json.size());
  if (schema.HasParseError() || !schema.IsObject()) {
    return fail(BH_E_ABI, "its config_schema is not a JSON object");
  }
  const rapidjson::SchemaDocument compiled(schema);
  rapidjson::SchemaValidator validator(compiled);
  config.Accept(validator);
  if (validator.IsValid()) return {};
  return fail(BH_E_INVALID, explain(validator, schema));
}

}  // namespace bulkhead
