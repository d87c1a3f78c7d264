#include "peek.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "http-codec/text.hpp"

namespace connector_http {

using http_codec::equal_ignoring_case;
namespace {

constexpr auto npos = std::string_view::npos;

std::size_t skip_space(std::string_view s, std::size_t at) noexcept {
  while (at < s.size() && (s[at] == ' ' || s[at] == '\t' || s[at] == '\n' || s[at] == '\r')) ++at;
  return at;
}

// s[at] is the opening quote; returns the position after the closing one, or npos.
std::size_t skip_string(std::string_view s, std::size_t at) noexcept {
  for (++at;;) {
    const std::size_t quote = s.find('"', at);
    if (quote == npos) return npos;
    std::size_t slash = quote;
    while (slash > at && s[slash - 1] == '\\') --slash;
    at = quote + 1;
    if (((quote - slash) & 1) == 0) return at;
  }
}

// Skips one value by counting brackets outside strings.
std::size_t skip_value(std::string_view s, std::size_t at) noexcept {
  at = skip_space(s, at);
  if (at >= s.size()) return npos;
  if (s[at] == '"') return skip_string(s, at);
  if (s[at] != '{' && s[at] != '[') {
    while (at < s.size() && std::strchr(",]} \t\r\n", s[at]) == nullptr) ++at;
    return at;
  }
  std::size_t depth = 0;
  while (at < s.size()) {
    const char c = s[at];
    if (c == '"') {
      at = skip_string(s, at);
      if (at == npos) return npos;
      continue;
    }
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && --depth == 0) return at + 1;
    ++at;
  }
  return npos;
}

// Calls f(name, position of the value) for each member of the top-level object until it returns
// false.
template <class F>
void each_member(std::string_view s, F &&f) noexcept {
  std::size_t at = skip_space(s, 0);
  if (at >= s.size() || s[at] != '{') return;
  at = skip_space(s, at + 1);
  while (at < s.size() && s[at] == '"') {
    const std::size_t end = skip_string(s, at);
    if (end == npos) return;
    const std::string_view name = s.substr(at + 1, end - at - 2);
    at = skip_space(s, end);
    if (at >= s.size() || s[at] != ':') return;
    const std::size_t value = skip_space(s, at + 1);
    if (value >= s.size() || !f(name, value)) return;
    at = skip_value(s, value);
    if (at == npos) return;
    at = skip_space(s, at);
    if (at >= s.size() || s[at] != ',') return;
    at = skip_space(s, at + 1);
  }
}

}  // namespace

bool is_response(std::string_view message) noexcept {
  bool response = false;
  each_member(message, [&](std::string_view name, std::size_t) {
    response = name == "result" || name == "error";
    return !response && name != "method";
  });
  return response;
}

bool answers_a_request(std::string_view message) noexcept {
  bool id = false, outcome = false;
  each_member(message, [&](std::string_view name, std::size_t value) {
    if (name == "id") {
      const char c = message[value];
      id = c == '"' || c == '-' || (c >= '0' && c <= '9');
    }
    if (name == "result" || name == "error") outcome = true;
    return true;
  });
  return id && outcome;
}

bool answers(std::string_view message, std::uint64_t id) noexcept {
  bool same = false, outcome = false;
  each_member(message, [&](std::string_view name, std::size_t value) {
    if (name == "id") {
      std::uint64_t n = 0;
      const char *const end = message.data() + message.size();
      const auto read = std::from_chars(message.data() + value, end, n);
      same = read.ec == std::errc() && n == id &&
             (read.ptr == end || std::strchr(",} \t\r\n", *read.ptr) != nullptr);
    }
    if (name == "result" || name == "error") outcome = true;
    return true;
  });
  return same && outcome;
}

bool holds_response(std::string_view message) noexcept {
  if (!is_batch(message)) return is_response(message);
  std::size_t at = 0;
  std::string_view element;
  bool malformed = false;
  while (next_of_batch(message, &at, &element, &malformed)) {
    if (is_response(element)) return true;
  }
  return malformed;  // the receiver reports the error
}

bool is_batch(std::string_view message) noexcept {
  const std::size_t at = skip_space(message, 0);
  return at < message.size() && message[at] == '[';
}

bool next_of_batch(std::string_view batch, std::size_t *at, std::string_view *element,
                   bool *malformed) noexcept {
  *malformed = false;
  std::size_t from = skip_space(batch, *at);
  const bool first = *at == 0;
  if (from >= batch.size()) return *malformed = true, false;
  if (!first && batch[from] == ']') return false;
  if (batch[from] != (first ? '[' : ',')) return *malformed = true, false;
  from = skip_space(batch, from + 1);
  if (first && from < batch.size() && batch[from] == ']') return false;
  const std::size_t end = skip_value(batch, from);
  if (end == npos || end == from) return *malformed = true, false;
  *element = batch.substr(from, end - from);
  *at = end;
  return true;
}

bool mentions(std::string_view text, std::string_view word) noexcept {
  for (std::size_t i = 0; i + word.size() <= text.size(); ++i) {
    if (equal_ignoring_case(text.substr(i, word.size()), word)) return true;
  }
  return false;
}

}  // namespace connector_http
