// Implements read_param_headers() and without_invalid_param_headers(): finds the annotations of an
// inputSchema in one pass without recursion.
#include <algorithm>
#include <array>

#include "bulkhead/cpp/json_reader.hpp"
#include "bulkhead/cpp/messages.hpp"
#include "bulkhead/cpp/text.hpp"
#include "mcp/json_cursor.hpp"
#include "mcp/json_names.hpp"
#include "mcp/param_headers.hpp"
#include "mcp/scan.hpp"

namespace bulkhead::mcp {
namespace {

constexpr std::string_view annotation_key = "x-mcp-header";
constexpr std::string_view header_prefix = "Mcp-Param-";
constexpr std::size_t most_name_shown = 100;  // limit for names in error messages, in bytes

// The kind of an open object or array in a schema. The *_in_path kinds are for values that are
// reached only through `properties`.
enum class Place : std::uint8_t {
  schema_in_path,
  properties_in_path,
  schema,
  map,   // an object whose values are schemas
  list,  // an array of schemas
  data
};

bool is_schema(Place place) noexcept {
  return place == Place::schema_in_path || place == Place::schema;
}

// `token` is a member name with quotes.
bool is_name(std::string_view token, std::string_view name) noexcept {
  return json::same_text(token.substr(1, token.size() - 2), name);
}

template <std::size_t n>
bool is_any(std::string_view token, const std::array<std::string_view, n> &names) noexcept {
  return std::any_of(names.begin(), names.end(),
                     [token](std::string_view name) { return is_name(token, name); });
}

constexpr std::array<std::string_view, 5> keywords_of_maps = {
    "patternProperties", "dependentSchemas", "$defs", "definitions", "dependencies"};
constexpr std::array<std::string_view, 17> keywords_of_schemas = {"items",
                                                                  "prefixItems",
                                                                  "additionalItems",
                                                                  "contains",
                                                                  "unevaluatedItems",
                                                                  "allOf",
                                                                  "anyOf",
                                                                  "oneOf",
                                                                  "not",
                                                                  "unevaluatedProperties",
                                                                  "if",
                                                                  "then",
                                                                  "else",
                                                                  "propertyNames",
                                                                  "additionalProperties",
                                                                  "extends",
                                                                  "contentSchema"};

class SchemaWalk {
 public:
  void begin_object() { open(place_of_object()); }
  void begin_array() { open(place_of_array()); }
  void end_array() { levels_.pop_back(); }
  void end_object() {
    if (is_schema(levels_.back().place) && !levels_.back().annotation.empty()) add_annotation();
    levels_.pop_back();
  }
  void key(std::string_view token) { levels_.back().key = token; }
  void string(std::string_view token) { scalar(token); }
  void number(std::string_view token) { scalar(token); }
  void word(std::string_view token) { scalar(token); }

  bool failed() const noexcept { return !problem_.empty(); }
  std::string &problem() noexcept { return problem_; }
  ParamHeaders &found() noexcept { return found_; }
  // The names of all members that are annotations, valid or not, with quotes.
  const std::vector<std::string_view> &names() const noexcept { return names_; }

 private:
  struct Level {
    Place place;
    std::string_view key;               // of the current member, with quotes
    std::string_view annotation, type;  // tokens; only in a schema
  };

  void open(Place place) {
    if (!levels_.empty()) scalar("{");  // an object or array as the value of a member
    levels_.push_back({place, {}, {}, {}});
  }

  // Stores the value of the current member if the member is `type` or the annotation.
  void scalar(std::string_view token) {
    if (levels_.empty() || !is_schema(levels_.back().place)) return;
    Level &level = levels_.back();
    if (is_name(level.key, annotation_key)) {
      level.annotation = token;
      names_.push_back(level.key);
    }
    if (is_name(level.key, "type")) level.type = token;
  }

  Place place_of_object() const noexcept {
    if (levels_.empty()) return Place::schema_in_path;
    const Level &parent = levels_.back();
    switch (parent.place) {
      case Place::properties_in_path:
        return Place::schema_in_path;
      case Place::map:
      case Place::list:
        return Place::schema;
      case Place::data:
        return Place::data;
      default:
        break;
    }
    if (is_name(parent.key, "properties")) {
      return parent.place == Place::schema_in_path ? Place::properties_in_path : Place::map;
    }
    if (is_any(parent.key, keywords_of_maps)) return Place::map;
    return is_any(parent.key, keywords_of_schemas) ? Place::schema : Place::data;
  }

  Place place_of_array() const noexcept {
    if (levels_.empty() || !is_schema(levels_.back().place)) return Place::data;
    return is_any(levels_.back().key, keywords_of_schemas) ? Place::list : Place::data;
  }

  // Returns the names on the path from the root of the arguments to the innermost schema.
  std::vector<std::string> path() const {
    std::vector<std::string> names;
    std::string scratch;
    for (const Level &level : levels_) {
      if (level.place != Place::properties_in_path) continue;
      names.emplace_back(unquote(level.key, &scratch));
    }
    return names;
  }

  // Validates the annotation of the innermost schema and adds it to the result. If several
  // annotations are invalid, only the first problem is reported.
  void add_annotation() {
    if (failed()) return;
    const Level &level = levels_.back();
    std::string scratch;
    ParamHeader param{std::string(header_prefix), path(), ParamType::string};
    const std::string_view name = unquote(level.annotation, &scratch);
    param.header.append(name);
    if (const std::string reason = problem_of(param, level, name); !reason.empty()) {
      problem_ = "x-mcp-header of " + place_text(param) + " " + reason;
    } else {
      found_.push_back(std::move(param));
    }
  }

  std::string problem_of(ParamHeader &param, const Level &level, std::string_view name) const {
    if (level.place != Place::schema_in_path || param.path.empty()) {
      return "must be on a property that is reachable through \"properties\" only";
    }
    if (!bh::is_token(name)) return "is not a valid header name (a token as in RFC 9110)";
    if (name.size() > max_param_header_name) {
      return "has more than " + std::to_string(max_param_header_name) + " characters";
    }
    if (!read_type(level.type, &param.type)) {
      return "requires a property of type \"string\", \"integer\" or \"boolean\"";
    }
    const auto same = [&](const ParamHeader &other) {
      return bh::equal_ignoring_case(other.header, param.header);
    };
    if (const auto other = std::find_if(found_.begin(), found_.end(), same);
        other != found_.end()) {
      return "has the same value as x-mcp-header of " + place_text(*other);
    }
    if (found_.size() < max_param_headers) return {};
    return "exceeds the limit of " + std::to_string(max_param_headers) + " annotations per tool";
  }

  static bool read_type(std::string_view token, ParamType *out) noexcept {
    constexpr std::array<std::string_view, 3> types = {"string", "integer", "boolean"};
    if (!token.starts_with('"')) return false;
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (!is_name(token, types[i])) continue;
      *out = static_cast<ParamType>(i);
      return true;
    }
    return false;
  }

  static std::string place_text(const ParamHeader &param) {
    if (param.path.empty()) return "the schema";
    std::string names;
    for (const std::string &name : param.path) {
      if (names.size() > most_name_shown) break;
      names.append(names.empty() ? "" : ".").append(name);
    }
    return "property " + bh::in_quotes(bh::one_line(names, most_name_shown));
  }

  std::vector<Level> levels_;
  ParamHeaders found_;
  std::vector<std::string_view> names_;
  std::string problem_;
};

// Returns the position after the member's value. `name` is part of the validated text.
std::size_t end_of_member(std::string_view text, std::string_view name) {
  json::Cursor cursor(text.substr(static_cast<std::size_t>(name.data() - text.data())));
  std::string_view inside;
  cursor.key(&inside);
  cursor.value(bh::json::max_depth);
  return static_cast<std::size_t>(cursor.at() - text.data());
}

}  // namespace

Result<ParamHeaders> read_param_headers(std::string_view input_schema) {
  SchemaWalk walk;
  if (!bh::json::walk(input_schema, walk)) {
    return fail(BH_E_INVALID, "inputSchema is not valid JSON, or it has more than " +
                                  std::to_string(bh::json::max_depth) + " levels");
  }
  if (walk.failed()) return fail(BH_E_INVALID, std::move(walk.problem()));
  if (!walk.found().empty() && has_duplicate_members(input_schema)) {
    return fail(BH_E_INVALID,
                "inputSchema has x-mcp-header and contains an object with duplicate members");
  }
  std::sort(walk.found().begin(), walk.found().end(),
            [](const ParamHeader &a, const ParamHeader &b) { return a.path < b.path; });
  return std::move(walk.found());
}

std::optional<std::string> without_invalid_param_headers(std::string_view input_schema) {
  SchemaWalk walk;
  if (!bh::json::walk(input_schema, walk) || walk.names().empty()) return std::nullopt;
  if (!walk.failed() && !has_duplicate_members(input_schema)) return std::nullopt;
  constexpr std::string_view space = " \t\r\n";
  std::string out;
  std::size_t at = 0;
  for (const std::string_view name : walk.names()) {
    const auto begin = static_cast<std::size_t>(name.data() - input_schema.data());
    out.append(input_schema.substr(at, begin - at));
    at = input_schema.find_first_not_of(space, end_of_member(input_schema, name));
    if (input_schema[at] == ',') {
      at = input_schema.find_first_not_of(space, at + 1);
      continue;
    }
    out.resize(out.find_last_not_of(space) + 1);
    if (out.back() == ',') out.pop_back();
  }
  return out.append(input_schema.substr(at));
}

}  // namespace bulkhead::mcp
