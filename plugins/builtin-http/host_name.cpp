#include "builtin-http/host_name.hpp"

#include <bulkhead/cpp/text.hpp>

#include <arpa/inet.h>
#include <idn2.h>

#include <algorithm>
#include <memory>

namespace builtin_http {
namespace {

constexpr std::size_t max_name = 253;
constexpr std::size_t max_unicode = 1024;  // bytes, before conversion to ASCII

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
}

// Returns the xn-- form of a non-ASCII name, or an empty string if the name is invalid.
std::string to_ascii(std::string_view name) {
  if (name.size() > max_unicode || name.find('\0') != name.npos) return {};
  char *text = nullptr;
  const std::string copy(name);
  if (idn2_to_ascii_8z(copy.c_str(), &text, IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL) != IDN2_OK) {
    return {};
  }
  const std::unique_ptr<char, void (*)(void *)> owner(text, idn2_free);
  return text;
}

bool parse_ip6(std::string_view inside, HostName *out) {
  unsigned char bytes[16];
  if (::inet_pton(AF_INET6, std::string(inside).c_str(), bytes) != 1) return false;
  char canonical[INET6_ADDRSTRLEN];
  ::inet_ntop(AF_INET6, bytes, canonical, sizeof canonical);
  *out = {canonical, true};
  return true;
}

}  // namespace

bool parse_host(std::string_view text, HostName *out) {
  if (text.size() > 2 && text.front() == '[' && text.back() == ']') {
    return parse_ip6(text.substr(1, text.size() - 2), out);
  }
  const bool ascii = std::all_of(text.begin(), text.end(),
                                 [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  std::string name = bh::lowered(ascii ? std::string(text) : to_ascii(text));
  if (name.ends_with('.')) name.pop_back();
  if (name.empty() || name.size() > max_name || name.front() == '.' ||
      name.find("..") != name.npos || !std::all_of(name.begin(), name.end(), is_plain)) {
    return false;
  }
  unsigned char bytes[4];
  const bool is_address = ::inet_pton(AF_INET, name.c_str(), bytes) == 1;
  const char last = name[name.rfind('.') + 1];  // npos + 1 is 0
  if (!is_address && last >= '0' && last <= '9') return false;
  *out = {std::move(name), is_address};
  return true;
}

}  // namespace builtin_http
