#include "mcp/trace_context.hpp"

#include <algorithm>

#include "bulkhead/cpp/text.hpp"
#include "mcp/json_names.hpp"

namespace bulkhead::mcp {
namespace {

bool is_lower_or_digit(char c) noexcept {
  return bh::is_digit(c) || (c >= 'a' && c <= 'z');
}

bool is_id(std::string_view text) noexcept {
  return bh::is_lower_hex(text) && text.find_first_not_of('0') != std::string_view::npos;
}

std::string_view trimmed(std::string_view text) noexcept {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// Moves the text up to the next separator from *rest to *part, without surrounding white space.
// Sets *more to true if a separator was found. If *more is false on entry, does nothing and returns
// false.
bool next_part(std::string_view *rest, bool *more, char separator,
               std::string_view *part) noexcept {
  if (!*more) return false;
  const std::size_t at = rest->find(separator);
  *more = at != std::string_view::npos;
  *part = trimmed(rest->substr(0, at));
  *rest = *more ? rest->substr(at + 1) : std::string_view{};
  return true;
}

bool valid_state_member(std::string_view member) noexcept {
  constexpr std::size_t most = 256;  // limit for a key and for a value, in characters
  const std::size_t equals = member.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view key = member.substr(0, equals), value = member.substr(equals + 1);
  const auto in_key = [](char c) {
    return is_lower_or_digit(c) || c == '_' || c == '-' || c == '*' || c == '/' || c == '@';
  };
  const auto in_value = [](char c) { return c >= ' ' && c <= '~' && c != ',' && c != '='; };
  return !key.empty() && key.size() <= most && is_lower_or_digit(key[0]) &&
         std::count(key.begin(), key.end(), '@') <= 1 && key.back() != '@' &&
         std::all_of(key.begin(), key.end(), in_key) && !value.empty() && value.size() <= most &&
         std::all_of(value.begin(), value.end(), in_value);
}

// Returns true if the text is a token as defined by HTTP (RFC 9110).
bool is_token(std::string_view text) noexcept {
  constexpr std::string_view marks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return bh::is_letter_or_digit(c) || marks.find(c) != std::string_view::npos;
  });
}

bool is_baggage_value(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return c > ' ' && c <= '~' && c != '"' && c != ',' && c != ';' && c != '\\';
  });
}

bool valid_pair(std::string_view text, bool needs_value) noexcept {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) return !needs_value && is_token(text);
  return is_token(trimmed(text.substr(0, equals))) &&
         is_baggage_value(trimmed(text.substr(equals + 1)));
}

}  // namespace

bool valid_traceparent(std::string_view text) noexcept {
  // The format is version "-" trace-id "-" parent-id "-" flags. Later versions may add "-" and more
  // text.
  constexpr std::size_t size = 55, most = 128;
  if (text.size() < size || text.size() > most) return false;
  if (text[2] != '-' || text[35] != '-' || text[52] != '-') return false;
  const std::string_view version = text.substr(0, 2);
  if (!bh::is_lower_hex(version) || version == "ff" || !bh::is_lower_hex(text.substr(53, 2)))
    return false;
  if (!is_id(text.substr(3, 32)) || !is_id(text.substr(36, 16))) return false;
  if (text.size() == size) return true;
  return version != "00" && text[size] == '-' &&
         std::all_of(text.begin() + size, text.end(),
                     [](char c) { return is_lower_or_digit(c) || c == '-'; });
}

bool valid_tracestate(std::string_view text) noexcept {
  if (text.size() > max_trace_bytes) return false;
  std::string_view member;
  std::size_t members = 0;
  for (bool more = true; next_part(&text, &more, ',', &member);) {
    if (member.empty()) continue;
    if (++members > max_tracestate_members || !valid_state_member(member)) return false;
  }
  return true;
}

bool valid_baggage(std::string_view text) noexcept {
  if (text.size() > max_trace_bytes) return false;
  std::string_view member;
  for (bool more = true; next_part(&text, &more, ',', &member);) {
    std::string_view part;
    bool first = true;
    for (bool parts = true; next_part(&member, &parts, ';', &part); first = false) {
      if (!valid_pair(part, first)) return false;
    }
  }
  return true;
}

bool is_bad_trace(std::string_view name, std::string_view value) noexcept {
  constexpr struct {
    std::string_view name;
    bool (*is_valid)(std::string_view) noexcept;
  } traces[] = {{"traceparent", valid_traceparent},
                {"tracestate", valid_tracestate},
                {"baggage", valid_baggage}};
  for (const auto &trace : traces) {
    if (!json::same_text(name, trace.name)) continue;
    if (!value.starts_with('"')) return true;
    std::string_view text = value.substr(1, value.size() - 2);
    char plain[max_trace_bytes];
    if (text.find('\\') != std::string_view::npos) {
      std::size_t size = 0;
      for (json::Unescape inside(text); !inside.done(); ++size) {
        const char32_t c = inside.next();
        if (size == sizeof plain || c > 0x7F)
          return true;  // no valid value is longer or contains non-ASCII characters
        plain[size] = static_cast<char>(c);
      }
      text = {plain, size};
    }
    return !trace.is_valid(text);
  }
  return false;
}

}  // namespace bulkhead::mcp
