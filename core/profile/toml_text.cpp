#include "profile/toml_text.hpp"

namespace bulkhead::profiles {

// JSON's escapes are TOML's; append_json_string() escapes all control characters.
std::string toml_string(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

std::string toml_key(std::string_view name) {
  bool bare = !name.empty();
  for (const char c : name)
    bare = bare && ((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                    c == '_' || c == '-');
  return bare ? std::string(name) : toml_string(name);
}

std::string toml_value(const Node &node) {
  switch (node.kind) {
    case Kind::null:
    case Kind::date:
      return {};
    case Kind::boolean:
      return node.flag ? "true" : "false";
    case Kind::number:
      return node.text;
    case Kind::string:
      return toml_string(node.text);
    case Kind::array: {
      std::string out;
      for (const Node &item : node.items) {
        const std::string value = toml_value(item);
        if (value.empty()) return {};
        out += (out.empty() ? "" : ", ") + value;
      }
      return '[' + out + ']';
    }
    case Kind::table: {
      std::string out;
      for (const Member &member : node.members) {
        const std::string value = toml_value(member.value);
        if (value.empty()) return {};
        out += (out.empty() ? " " : ", ") + toml_key(member.name) + " = " + value;
      }
      return '{' + out + (out.empty() ? "}" : " }");
    }
  }
  return {};
}

}  // namespace bulkhead::profiles
