#include "lost_answer.hpp"

#include <algorithm>

namespace transport_http {

namespace {

std::size_t skip_space(std::string_view s, std::size_t at) noexcept {
  return std::min(s.find_first_not_of(" \t\r\n", at), s.size());
}

// s[at] is the opening quote; gives the place behind the closing one.
std::size_t skip_string(std::string_view s, std::size_t at) noexcept {
  for (++at; at < s.size() && s[at] != '"'; ++at) {
    if (s[at] == '\\') ++at;
  }
  return std::min(at + 1, s.size());
}

std::size_t skip_value(std::string_view s, std::size_t at) noexcept {
  std::size_t depth = 0;
  while (at < s.size()) {
    const char c = s[at];
    if (c == '"') {
      at = skip_string(s, at);
      if (depth == 0) return at;
      continue;
    }
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') {
      if (depth == 0) return at;  // behind a number or a word
      if (--depth == 0) return at + 1;
    }
    if (c == ',' && depth == 0) return at;
    ++at;
  }
  return at;
}

// The value of the top-level member `id`; empty: there is none. The host's messages are valid JSON.
std::string_view id_of(std::string_view s) noexcept {
  std::size_t at = skip_space(s, 0);
  if (at >= s.size() || s[at] != '{') return {};
  while (at < s.size() && s[at] != '}') {
    const std::size_t name = skip_space(s, at + 1);  // behind the brace or the comma
    if (name >= s.size() || s[name] != '"') return {};
    const std::size_t end = skip_string(s, name);
    const std::size_t colon = skip_space(s, end);
    const std::size_t value = skip_space(s, std::min(colon + 1, s.size()));
    const std::size_t behind = skip_value(s, value);
    if (s.substr(name, end - name) == "\"id\"") return s.substr(value, behind - value);
    at = skip_space(s, behind);
  }
  return {};
}

}  // namespace

std::string lost_answer(std::string_view answer) {
  const std::string_view id = id_of(answer);
  std::string out = "{\"jsonrpc\":\"2.0\",\"id\":";
  out.append(id.empty() ? "null" : id);
  out.append(",\"error\":{\"code\":-32000,\"message\":\"The request has run, but its answer of ");
  out.append(std::to_string(answer.size()));
  out.append(
      " bytes was lost with the connection: it is too large to be kept "
      "(limits.event_buffer_bytes)\"}}");
  return out;
}

}  // namespace transport_http
