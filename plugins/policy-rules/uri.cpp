#include "uri.hpp"

#include <algorithm>

namespace bulkhead::rules {
namespace {

bool is_letter(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}
bool is_unreserved(char c) noexcept {
  return is_letter(c) || is_digit(c) || c == '-' || c == '.' || c == '_' || c == '~';
}
char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

// -1: no hexadecimal digit.
int hex(char c) noexcept {
  if (is_digit(c)) return c - '0';
  const char small = lower(c);
  return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
}

// Escapes of unreserved characters resolved, others in capitals. What is no escape stays.
std::string unescaped(std::string_view text) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? hex(text[i + 1]) : -1;
    const int low = high < 0 ? -1 : hex(text[i + 2]);
    if (low < 0) {
      out += text[i];
      continue;
    }
    const char c = static_cast<char>(high * 16 + low);
    if (is_unreserved(c)) {
      out += c;
    } else {
      out += {'%', digits[static_cast<std::size_t>(high)], digits[static_cast<std::size_t>(low)]};
    }
    i += 2;
  }
  return out;
}

// RFC 3986, 5.2.4; a path without a slash at its beginning gets none.
std::string without_dots(std::string_view path) {
  const bool rooted = path.starts_with('/');
  if (rooted) path.remove_prefix(1);
  std::string out;
  for (bool more = true; more;) {
    const std::size_t end = path.find('/');
    const std::string_view segment = path.substr(0, end);
    more = end != std::string_view::npos;
    path = more ? path.substr(end + 1) : std::string_view{};
    if (segment == "..") {
      if (!out.empty()) out.pop_back();  // the slash behind the segment before
      out.resize(out.rfind('/') == std::string::npos ? 0 : out.rfind('/') + 1);
    } else if (segment != ".") {
      out.append(segment);
      if (more) out += '/';
    }
  }
  return rooted ? "/" + out : out;
}

// Where the scheme ends (its colon); npos: there is none.
std::size_t scheme_end(std::string_view uri) noexcept {
  if (uri.empty() || !is_letter(uri[0])) return std::string_view::npos;
  for (std::size_t i = 1; i < uri.size(); ++i) {
    const char c = uri[i];
    if (c == ':') return i;
    if (!is_letter(c) && !is_digit(c) && c != '+' && c != '-' && c != '.') break;
  }
  return std::string_view::npos;
}

std::string lowered(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), lower);
  return out;
}

// user@HOST:port. Escapes keep their capitals.
std::string authority_of(std::string_view text) {
  const std::size_t at = text.rfind('@');
  const std::size_t host = at == std::string_view::npos ? 0 : at + 1;
  std::string out = unescaped(text.substr(0, host)), name = unescaped(text.substr(host));
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '%' && i + 2 < name.size() && hex(name[i + 1]) >= 0 && hex(name[i + 2]) >= 0) {
      i += 2;
    } else {
      name[i] = lower(name[i]);
    }
  }
  return out + name;
}

}  // namespace

std::string normalized_uri(std::string_view uri) {
  std::string out;
  const std::size_t colon = scheme_end(uri);
  if (colon != std::string_view::npos) {
    out = lowered(uri.substr(0, colon + 1));
    uri.remove_prefix(colon + 1);
  }
  const bool has_authority = uri.starts_with("//");
  if (has_authority) {
    const std::size_t end = std::min(uri.find_first_of("/?#", 2), uri.size());
    out += "//" + authority_of(uri.substr(2, end - 2));
    uri.remove_prefix(end);
  }
  const std::size_t end = std::min(uri.find_first_of("?#"), uri.size());
  const std::string path = without_dots(unescaped(uri.substr(0, end)));
  if (!has_authority && path.starts_with("//")) out += "/.";  // else it would read as a host
  out += path;
  return out + unescaped(uri.substr(end));
}

}  // namespace bulkhead::rules
