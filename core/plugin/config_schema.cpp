#include "plugin/config_schema.hpp"

#include <rapidjson/document.h>
#include <rapidjson/pointer.h>
#include <rapidjson/schema.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "bulkhead/cpp/text.hpp"
#include "plugin/text.hpp"

namespace bulkhead {
namespace {

constexpr std::size_t max_config_bytes = 1u << 20;
// The member of a policy's configuration that contains the profile's rules (see
// profile/rule_sections.hpp).
constexpr const char *rules_member = "profile_rules";
constexpr std::size_t max_number_length = 64;
constexpr std::size_t max_exponent_digits = 4;
constexpr std::size_t max_depth = 64;
constexpr unsigned parse_flags =
    rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag;

// Returns null if it is safe to parse the text with RapidJSON, and an error message otherwise.
// RapidJSON 1.1.0 computes exponents in an int, which may overflow (CVE-2024-38517). For each
// value, its validator visits every enclosing level, so deep nesting is slow. It compiles a schema
// recursively, so a deeply nested one would overflow the stack.
const char *beyond_bounds(std::string_view json) noexcept {
  bool in_string = false, exponent = false;
  // `length` and `digits` refer to the current number
  std::size_t length = 0, digits = 0, depth = 0;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (bh::is_digit(c) || (length > 0 && c != '\0' && std::strchr(".eE+-", c) != nullptr)) {
      exponent = exponent || c == 'e' || c == 'E';
      if (exponent && bh::is_digit(c)) ++digits;
      if (++length > max_number_length) return "a number has more than 64 characters";
      if (digits > max_exponent_digits) return "a number has more than 4 exponent digits";
    } else {
      in_string = c == '"';
      exponent = false;
      length = digits = 0;
      if ((c == '{' || c == '[') && ++depth > max_depth)
        return "it is nested more than 64 levels deep";
      if ((c == '}' || c == ']') && depth > 0) --depth;
    }
  }
  return nullptr;
}

std::string text_of(const rapidjson::Value &value) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  value.Accept(writer);
  return bh::one_line({buffer.GetString(), buffer.GetSize()}, 200);
}

template <class Pointer>
std::string text_of(const Pointer &pointer) {
  rapidjson::StringBuffer buffer;
  pointer.Stringify(buffer);
  return bh::one_line({buffer.GetString(), buffer.GetSize()}, 200);
}

// Returns the member names that a schema allows, for an error message.
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
  return known.empty() ? "none" : bh::one_line(known, 500);
}

const rapidjson::Value *find(const rapidjson::Value *object, std::string_view name) {
  if (object == nullptr || !object->IsObject()) return nullptr;
  const auto at = object->FindMember(
      rapidjson::Value(name.data(), static_cast<rapidjson::SizeType>(name.size())));
  return at == object->MemberEnd() ? nullptr : &at->value;
}

// Returns true if the configuration contains rules but the schema does not define them. In this
// case, the plugin would silently ignore the rules.
bool leaves_rules_out(const rapidjson::Value *schema, const rapidjson::Value &config) {
  return find(&config, rules_member) != nullptr &&
         find(find(schema, "properties"), rules_member) == nullptr;
}

constexpr const char *rules_left_out =
    "the profile has rules, but this plugin does not evaluate them: use \"policy-rules\" instead, "
    "or "
    "add it as another policy and set rules = false here";

// Describes what the schema allows, for the error message after validation has failed at `keyword`.
// `rule` is the schema that contains the keyword.
std::string allowed(const std::string &keyword, const rapidjson::Value *rule) {
  if (keyword == "additionalProperties") {
    return "unknown key; known keys: " + known_members(rule);
  }
  const rapidjson::Value *wanted = find(rule, keyword);
  const rapidjson::Value *description = find(rule, "description");
  if (keyword == "pattern" && description != nullptr && description->IsString()) {
    return "must be " +
           bh::one_line({description->GetString(), description->GetStringLength()}, 300);
  }
  return "must match " + keyword + (wanted == nullptr ? "" : " " + text_of(*wanted));
}

// Returns the required members that an object does not have, as "key" or "key, other".
std::string missing_members(const rapidjson::Value *object, const rapidjson::Value *rule) {
  std::string out;
  const rapidjson::Value *names = find(rule, "required");
  if (names == nullptr || !names->IsArray()) return out;
  for (const auto &name : names->GetArray()) {
    if (!name.IsString()) continue;
    const std::string_view member(name.GetString(), name.GetStringLength());
    if (find(object, member) != nullptr) continue;
    out += (out.empty() ? "" : ", ") + bh::one_line(member, 80);
  }
  return bh::one_line(out, 300);
}

std::string explain(const rapidjson::SchemaValidator &validator, const rapidjson::Document &schema,
                    const rapidjson::Document &config) {
  const auto where = validator.GetInvalidDocumentPointer();
  const std::string keyword = validator.GetInvalidSchemaKeyword();
  const rapidjson::Value *rule = validator.GetInvalidSchemaPointer().Get(schema);
  const std::string path = "config" + text_of(where) + ": ";
  const std::string missing =
      keyword == "required" ? missing_members(where.Get(config), rule) : std::string();
  return path +
         (missing.empty() ? allowed(keyword, rule) : "required keys are missing: " + missing);
}

// Converts a JSON pointer to a path like "a.b[0]".
template <class Pointer>
std::string path_of(const Pointer &pointer, const rapidjson::Value &root) {
  std::string path;
  const rapidjson::Value *at = &root;
  for (std::size_t i = 0; i < pointer.GetTokenCount(); ++i) {
    const auto &token = pointer.GetTokens()[i];
    const std::string name(token.name, token.length);
    if (at != nullptr && at->IsArray()) {
      path += '[' + name + ']';
      at = token.index < at->Size() ? &(*at)[token.index] : nullptr;
    } else {
      path += (path.empty() ? "" : ".") + bh::one_line(name, 80);
      at = find(at, name);
    }
  }
  return path;
}

// Finds errors by validating repeatedly. After each error, the invalid member is removed from the
// configuration or, if members are missing, the schema's `required` list is removed.
class FaultFinder {
 public:
  FaultFinder(rapidjson::Document &schema, rapidjson::Document &config)
      : schema_(schema), config_(config) {}

  std::vector<ConfigFault> find_all() {
    constexpr std::size_t most = 64;
    for (std::size_t round = 0; round < 2 * most && out_.size() < most; ++round) {
      if (!find_one()) break;
    }
    return std::move(out_);
  }

 private:
  // Finds the next error. Returns false if there is none.
  bool find_one() {
    const rapidjson::SchemaDocument compiled(schema_);
    rapidjson::SchemaValidator validator(compiled);
    config_.Accept(validator);
    if (validator.IsValid()) return false;
    const std::string keyword = validator.GetInvalidSchemaKeyword();
    const auto where = validator.GetInvalidDocumentPointer();
    const auto rule_at = validator.GetInvalidSchemaPointer();
    rapidjson::Value *rule = rule_at.Get(schema_);
    if (keyword == "required") return report_missing_members(path_of(where, config_), rule);
    out_.push_back({path_of(where, config_), allowed(keyword, rule)});
    return take_out(where);
  }

  bool report_missing_members(const std::string &path, rapidjson::Value *rule) {
    const rapidjson::Value *names = find(rule, "required");
    if (names == nullptr || !names->IsArray()) return false;
    for (const auto &name : names->GetArray()) {
      if (!name.IsString()) continue;
      const std::string member = (path.empty() ? "" : path + ".") + name.GetString();
      const bool there = rapidjson::Pointer(pointer_text(member).c_str()).Get(config_) != nullptr;
      const bool wrong = std::find(taken_.begin(), taken_.end(), member) != taken_.end();
      if (!there && !wrong) out_.push_back({member, "is missing; it is required"});
    }
    return rule->RemoveMember("required");
  }

  static std::string pointer_text(const std::string &path) {
    std::string text = "/";
    for (const char c : path) {
      if (c == ']') continue;
      text += c == '.' || c == '[' ? '/' : c;
    }
    return text;
  }

  // Removes the invalid member. If it is inside an array, the whole array is removed, because
  // removing a single element would change the indexes of later elements.
  template <class Pointer>
  bool take_out(const Pointer &where) {
    std::size_t depth = 0, tokens = where.GetTokenCount();
    const rapidjson::Value *at = &config_;
    while (depth < tokens && at != nullptr && at->IsObject()) {
      const auto &token = where.GetTokens()[depth++];
      at = find(at, {token.name, token.length});
    }
    if (depth == 0) return false;
    const Pointer member(where.GetTokens(), depth);
    taken_.push_back(path_of(member, config_));
    return member.Erase(config_);
  }

  rapidjson::Document &schema_;
  rapidjson::Document &config_;
  std::vector<ConfigFault> out_;
  std::vector<std::string> taken_;  // paths of the removed members
};

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
  if (schema_json.empty()) {
    if (leaves_rules_out(nullptr, config)) return fail(BH_E_INVALID, rules_left_out);
    return {};
  }
  if (const char *what = beyond_bounds(schema_json); what != nullptr) {
    return fail(BH_E_ABI, std::string("its config_schema cannot be evaluated: ") + what);
  }
  rapidjson::Document schema;
  schema.Parse<parse_flags>(schema_json.data(), schema_json.size());
  if (schema.HasParseError() || !schema.IsObject()) {
    return fail(BH_E_ABI, "its config_schema is not a JSON object");
  }
  if (leaves_rules_out(&schema, config)) return fail(BH_E_INVALID, rules_left_out);
  const rapidjson::SchemaDocument compiled(schema);
  rapidjson::SchemaValidator validator(compiled);
  config.Accept(validator);
  if (validator.IsValid()) return {};
  return fail(BH_E_INVALID, explain(validator, schema, config));
}

std::vector<ConfigFault> config_faults(std::string_view schema_json, std::string_view config_json) {
  if (config_json.size() > max_config_bytes) return {{"", "is larger than 1 MiB"}};
  if (const char *what = beyond_bounds(config_json); what != nullptr) return {{"", what}};
  if (schema_json.empty() || beyond_bounds(schema_json) != nullptr) return {};
  rapidjson::Document schema, config;
  schema.Parse<parse_flags>(schema_json.data(), schema_json.size());
  config.Parse<parse_flags>(config_json.data(), config_json.size());
  if (config.HasParseError() || !config.IsObject()) return {{"", "is not a JSON object"}};
  if (schema.HasParseError() || !schema.IsObject()) return {};
  std::vector<ConfigFault> faults;
  if (leaves_rules_out(&schema, config)) {
    faults.push_back({"", rules_left_out});
    config.RemoveMember(rules_member);
  }
  for (ConfigFault &fault : FaultFinder(schema, config).find_all()) {
    faults.push_back(std::move(fault));
  }
  return faults;
}

}  // namespace bulkhead
