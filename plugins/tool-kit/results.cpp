#include "tool-kit/results.hpp"

#include <algorithm>

namespace tool_kit {
namespace {

// Length of the well-formed UTF-8 character at the front of text, or 0.
std::size_t character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned a = byte(0);
  if (a < 0x80) return 1;
  const std::size_t n = a >= 0xF0 ? 4 : a >= 0xE0 ? 3 : 2;
  if (a < 0xC2 || a > 0xF4 || text.size() < n) return 0;
  for (std::size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const unsigned b = byte(1);
  const bool overlong = (a == 0xE0 && b < 0xA0) || (a == 0xF0 && b < 0x90);
  const bool no_character = (a == 0xED && b > 0x9F) || (a == 0xF4 && b > 0x8F);
  return overlong || no_character ? 0 : n;
}

bool is_plain(char c) {
  return static_cast<signed char>(c) >= 0x20 && c != '"' && c != '\\';
}

void append_escape(std::string *out, char c) {
  static constexpr char digits[] = "0123456789abcdef";
  switch (c) {
    case '"':
    case '\\':
      *out += '\\';
      *out += c;
      return;
    case '\n':
      *out += "\\n";
      return;
    case '\t':
      *out += "\\t";
      return;
    case '\r':
      *out += "\\r";
      return;
    default:
      *out += "\\u00";
      *out += digits[static_cast<unsigned char>(c) >> 4];
      *out += digits[c & 15];
  }
}

std::string result(std::string_view text, std::string_view more) {
  std::string out = R"({"content":[{"type":"text","text":)";
  out.reserve(text.size() + text.size() / 16 + more.size() + 80);
  append_quoted(&out, text);
  out += "}]";
  out += more;
  out += '}';
  return out;
}

}  // namespace

void append_quoted(std::string *out, std::string_view text) {
  *out += '"';
  while (!text.empty()) {
    const auto plain = std::find_if_not(text.begin(), text.end(), is_plain);
    out->append(text.begin(), plain);
    text.remove_prefix(static_cast<std::size_t>(plain - text.begin()));
    if (text.empty()) break;
    if (static_cast<unsigned char>(text[0]) < 0x80) {
      append_escape(out, text[0]);
      text.remove_prefix(1);
      continue;
    }
    const std::size_t n = character(text);
    if (n == 0) {
      *out += "\xEF\xBF\xBD";
    } else {
      out->append(text.substr(0, n));
    }
    text.remove_prefix(std::max<std::size_t>(n, 1));
  }
  *out += '"';
}

std::string quoted(std::string_view text) {
  std::string out;
  append_quoted(&out, text);
  return out;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t n = character(text);
    if (n == 0) return false;
    text.remove_prefix(n);
  }
  return true;
}

std::string repaired(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t n = character(text);
    out += n == 0 ? "\xEF\xBF\xBD" : text.substr(0, n);
    text.remove_prefix(std::max<std::size_t>(n, 1));
  }
  return out;
}

std::size_t cut_at(std::string_view text, std::size_t limit) {
  if (limit >= text.size()) return text.size();
  std::size_t n = limit;
  for (int i = 0; i < 3 && n > 0 && (static_cast<unsigned char>(text[n]) & 0xC0) == 0x80; ++i) --n;
  return (static_cast<unsigned char>(text[n]) & 0xC0) == 0x80 ? limit : n;
}

std::string text_result(std::string_view text, std::string_view structured) {
  if (structured.empty()) return result(text, {});
  return result(text, ",\"structuredContent\":" + std::string(structured));
}

std::string error_result(std::string_view sentence) {
  return result("Error: " + std::string(sentence), ",\"isError\":true");
}

}  // namespace tool_kit
