#include "profile/toml_text.hpp"

#include <charconv>
#include <cstdint>

#include "bulkhead/cpp/text.hpp"

namespace bulkhead::profiles {

std::size_t skip_toml_string(std::string_view text, std::size_t i) {
  const char quote = text[i];
  const std::string three(3, quote);
  const bool many = text.substr(i, 3) == three;
  for (i += many ? 3 : 1; i < text.size(); ++i) {
    if (!many && text[i] == '\n') return i;
    if (quote == '"' && text[i] == '\\') {
      ++i;
    } else if (!many && text[i] == quote) {
      return i + 1;
    } else if (many && text.substr(i, 3) == three) {
      i += 3;
      // A multi-line string can end with one or two quotes that belong to its text.
      for (int more = 0; more < 2 && i < text.size() && text[i] == quote; ++more) ++i;
      return i;
    }
  }
  return text.size();
}

// append_json_string() escapes all control characters, and JSON's escape sequences are also valid
// in TOML.
std::string toml_string(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

std::string toml_key(std::string_view name) {
  bool bare = !name.empty();
  for (const char c : name) bare = bare && (bh::is_letter_or_digit(c) || c == '_' || c == '-');
  return bare ? std::string(name) : toml_string(name);
}

namespace {

// Returns true for an integer that does not fit into 64 bits: JSON permits it, TOML does not.
bool is_too_large(std::string_view number) {
  std::int64_t value = 0;
  const char *const end = number.data() + number.size();
  const auto [stop, error] = std::from_chars(number.data(), end, value);
  return stop == end && error == std::errc::result_out_of_range;
}

}  // namespace

std::string toml_value(const Node &node) {
  switch (node.kind) {
    case Kind::null:
    case Kind::date:
      return {};
    case Kind::boolean:
      return node.flag ? "true" : "false";
    case Kind::number:
      return is_too_large(node.text) ? std::string() : node.text;
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
