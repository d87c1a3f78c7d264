#include "profile/toml.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <tuple>

#include "profile/parse.hpp"
#include "profile/toml_text.hpp"

namespace bulkhead::profiles {

namespace {

constexpr std::size_t kDotsPerLine = 100;

// Returns the first line with too many dots outside strings and comments, or 0 if there is none.
// toml++ does not limit the length of dotted keys and recurses once for each part. This check
// exists only to produce a better message; parse_key() enforces the limit
// (cmake/BulkheadToml.cmake).
std::uint32_t overlong_key_line(std::string_view text) {
  std::uint32_t line = 1;
  std::size_t dots = 0;
  std::size_t i = 0;
  while (i < text.size()) {
    const char c = text[i];
    if (c == '\n') {
      ++line;
      dots = 0;
      ++i;
    } else if (c == '#') {
      while (i < text.size() && text[i] != '\n') ++i;
    } else if (c == '"' || c == '\'') {
      const std::size_t end = skip_toml_string(text, i);
      line += static_cast<std::uint32_t>(std::count(text.begin() + static_cast<std::ptrdiff_t>(i),
                                                    text.begin() + static_cast<std::ptrdiff_t>(end),
                                                    '\n'));
      i = end;
    } else {
      if (c == '.' && ++dots > kDotsPerLine) return line;
      ++i;
    }
  }
  return 0;
}

// Removes the values that toml++ quotes in its messages and that begin like a number, because such
// a value may be a credential that the user forgot to put in quotes.
std::string without_values(std::string_view text) {
  std::string out;
  std::size_t i = 0;
  while (i < text.size()) {
    out += text[i];
    const bool number =
        text[i] == '\'' && i + 1 < text.size() &&
        (std::string_view("0123456789+-.").find(text[i + 1]) != std::string_view::npos);
    ++i;
    if (!number) continue;
    const std::size_t end = text.find('\'', i);
    if (end == std::string_view::npos || end - i <= 3) continue;
    out += "...";
    i = end;
  }
  return printable(out, 400);
}

constexpr std::string_view kQuoteHint = "; a closing quote may be missing";

// Returns true if toml++ found a line break or the end of the file in a string.
bool may_lack_quote(std::string_view description) {
  const auto has = [&](std::string_view part) { return description.find(part) != part.npos; };
  return has("parsing") && has("string") && (has("control characters") || has("end-of-file"));
}

class Converter {
 public:
  Converter(std::uint16_t layer, std::size_t max_values, Diagnostics &diagnostics)
      : layer_(layer), max_values_(max_values), left_(max_values), diagnostics_(diagnostics) {}

  // kProfileDepth limits the recursion.
  bool convert(const toml::node &from, Node *out, std::size_t depth) {
    out->place = place(from.source());
    if (left_ == 0 || depth > kProfileDepth) {
      diagnostics_.error(
          out->place, "",
          left_ == 0 ? "more than " + std::to_string(max_values_) + " values"
                     : "more than " + std::to_string(kProfileDepth) + " nested tables and arrays",
          "too_large");
      return false;
    }
    --left_;
    if (const auto *table = from.as_table()) return convert_table(*table, out, depth);
    if (const auto *array = from.as_array()) return convert_array(*array, out, depth);
    return convert_scalar(from, out);
  }

 private:
  Place place(const toml::source_region &region) const {
    return {layer_, region.begin.line, region.begin.column};
  }

  bool convert_table(const toml::table &table, Node *out, std::size_t depth) {
    out->kind = Kind::table;
    for (const auto &[key, value] : table) {
      Member &member = out->members.emplace_back();
      member.name = key.str();
      member.place = place(key.source());
      if (!convert(value, &member.value, depth + 1)) return false;
    }
    // toml++ sorts members by name, but messages list them in file order.
    std::sort(out->members.begin(), out->members.end(), [](const Member &a, const Member &b) {
      return std::tie(a.place.line, a.place.column, a.name) <
             std::tie(b.place.line, b.place.column, b.name);
    });
    return true;
  }

  bool convert_array(const toml::array &array, Node *out, std::size_t depth) {
    out->kind = Kind::array;
    for (const toml::node &item : array)
      if (!convert(item, &out->items.emplace_back(), depth + 1)) return false;
    return true;
  }

  bool convert_scalar(const toml::node &from, Node *out) {
    if (const auto *text = from.as_string()) {
      out->kind = Kind::string;
      out->text = text->get();
    } else if (const auto *whole = from.as_integer()) {
      out->kind = Kind::number;
      out->text = std::to_string(whole->get());
    } else if (const auto *real = from.as_floating_point()) {
      return convert_real(real->get(), out);
    } else if (const auto *flag = from.as_boolean()) {
      out->kind = Kind::boolean;
      out->flag = flag->get();
    } else {
      out->kind = Kind::date;
    }
    return true;
  }

  bool convert_real(double value, Node *out) {
    out->kind = Kind::number;
    if (!std::isfinite(value)) {
      diagnostics_.error(out->place, "", "inf and nan are not allowed");
      return false;
    }
    char digits[64];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    out->text.assign(digits, end);
    return true;
  }

  const std::uint16_t layer_;
  const std::size_t max_values_;
  std::size_t left_;
  Diagnostics &diagnostics_;
};

bool parse_checked(std::string_view text, std::uint16_t index, const ParseOptions &options,
                   Node *out, Diagnostics &diagnostics) {
  const toml::parse_result result = toml::parse(text);
  if (!result) {
    const toml::parse_error &error = result.error();
    const auto &at = error.source().begin;
    diagnostics.error({index, at.line, at.column}, "",
                      "not valid TOML: " + without_values(error.description()) +
                          std::string(may_lack_quote(error.description()) ? kQuoteHint : ""),
                      "invalid_toml");
    return false;
  }
  Converter converter(index, options.max_values, diagnostics);
  return converter.convert(result.table(), out, 0);
}

}  // namespace

bool parse_toml(const ProfileLayer &layer, std::uint16_t index, const ParseOptions &options,
                Node *out, Diagnostics &diagnostics) {
  if (const std::uint32_t line = overlong_key_line(layer.text); line > 0) {
    diagnostics.error({index, line, 0}, "",
                      "more than " + std::to_string(kDotsPerLine) + " dots on one line",
                      "invalid_toml");
    return false;
  }
  try {
    return parse_checked(layer.text, index, options, out, diagnostics);
  } catch (const UnexpectedToml &) {
    diagnostics.error({index, 0, 0}, "", "not valid TOML: parsing failed", "invalid_toml");
    return false;
  }
}

}  // namespace bulkhead::profiles
