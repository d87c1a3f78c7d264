#include "uri.hpp"

#include <bulkhead/cpp/text.hpp>

#include <arpa/inet.h>

#include <algorithm>
#include <array>

namespace bulkhead::rules {
namespace {

bool is_unreserved(char c) noexcept {
  return bh::is_letter_or_digit(c) || c == '-' || c == '.' || c == '_' || c == '~';
}
bool is_reserved(char c) noexcept {
  constexpr std::string_view all = ":/?#[]@!$&'()*+,;=";
  return all.find(c) != std::string_view::npos;
}
bool is_slash(char c) noexcept {
  return c == '/' || c == '\\';
}

void append_escaped(unsigned char byte, std::string *out) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  *out += {'%', digits[byte >> 4], digits[byte & 15]};
}

// Returns the byte that the percent escape at text[at] represents, or -1 if there is no valid
// escape at this position.
int escape_at(std::string_view text, std::size_t at) noexcept {
  if (text[at] != '%' || text.size() - at < 3) return -1;
  const int high = bh::hex_value(text[at + 1]), low = bh::hex_value(text[at + 2]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

// Decodes percent escapes for unreserved characters and converts all other percent escapes to upper
// case. Escapes all characters that are not allowed in a URI, including a % that is not followed by
// two hexadecimal digits.
std::string escaped_once(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int byte = escape_at(text, i);
    if (byte >= 0) {
      const char c = static_cast<char>(byte);
      is_unreserved(c) ? out.push_back(c) : append_escaped(static_cast<unsigned char>(byte), &out);
      i += 2;
    } else if (is_unreserved(text[i]) || is_reserved(text[i])) {
      out += text[i];
    } else {
      append_escaped(static_cast<unsigned char>(text[i]), &out);
    }
  }
  return out;
}

// Removes dot segments from a path (RFC 3986, 5.2.4). A relative path stays relative.
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
      if (!out.empty()) out.pop_back();  // removes the slash after the previous segment
      out.resize(out.rfind('/') == std::string::npos ? 0 : out.rfind('/') + 1);
    } else if (segment != ".") {
      out.append(segment);
      if (more) out += '/';
    }
  }
  return rooted ? "/" + out : out;
}

std::string without_doubled_slashes(std::string path) {
  const auto both = [](char a, char b) { return a == '/' && b == '/'; };
  path.erase(std::unique(path.begin(), path.end(), both), path.end());
  return path;
}

bool has_parent_segment(std::string_view path) noexcept {
  for (bool more = true; more;) {
    const std::size_t end = path.find('/');
    if (path.substr(0, end) == "..") return true;
    more = end != std::string_view::npos;
    path = more ? path.substr(end + 1) : std::string_view{};
  }
  return false;
}

std::string_view without_blanks(std::string_view text) {
  const auto blank = [](char c) { return static_cast<unsigned char>(c) <= 0x20; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

// Removes the characters that URL parsers ignore: spaces and control characters at both ends, and
// tabs and line breaks anywhere.
std::string cleaned(std::string_view text) {
  std::string out(without_blanks(text));
  std::erase_if(out, [](char c) { return c == '\t' || c == '\r' || c == '\n'; });
  return std::string(without_blanks(out));
}

// Returns the position of the colon after the scheme, or npos if the URI has no scheme.
std::size_t scheme_end(std::string_view uri) noexcept {
  if (uri.empty() || !bh::is_letter(uri[0])) return std::string_view::npos;
  for (std::size_t i = 1; i < uri.size(); ++i) {
    const char c = uri[i];
    if (c == ':') return i;
    if (!bh::is_letter(c) && !bh::is_digit(c) && c != '+' && c != '-' && c != '.') break;
  }
  return std::string_view::npos;
}

// A special scheme as defined by the URL standard.
struct Special {
  std::string_view scheme, port;
};
constexpr std::array<Special, 6> kSpecials = {
    {{"http", "80"}, {"https", "443"}, {"ws", "80"}, {"wss", "443"}, {"ftp", "21"}, {"file", ""}}};

const Special *special_of(std::string_view scheme) noexcept {
  const auto at = std::find_if(kSpecials.begin(), kSpecials.end(),
                               [&](const Special &each) { return each.scheme == scheme; });
  return at == kSpecials.end() ? nullptr : &*at;
}

bool is_file(const Special *special) noexcept {
  return special != nullptr && special->port.empty();
}

// Returns the canonical form of an IPv6 address in brackets, such as [2001:db8::1] for
// [2001:DB8:0::1]. Returns all other names unchanged.
std::string ipv6_of(std::string name) {
  in6_addr address{};
  char text[INET6_ADDRSTRLEN];
  const std::string inner = name.substr(1, name.size() - 2);
  if (inet_pton(AF_INET6, inner.c_str(), &address) != 1 ||
      inet_ntop(AF_INET6, &address, text, sizeof text) == nullptr)
    return name;
  return "[" + std::string(text) + "]";
}

// Replaces each part of the name that is "0x" with "0". The URL standard permits both notations,
// inet_aton() only the second.
std::string without_empty_hex(std::string_view name) {
  std::string out;
  for (bool more = true; more;) {
    const std::size_t end = name.find('.');
    const std::string_view part = name.substr(0, end);
    more = end != std::string_view::npos;
    name = more ? name.substr(end + 1) : std::string_view{};
    out.append(part == "0x" ? part.substr(0, 1) : part);
    if (more) out += '.';
  }
  return out;
}

// Returns the canonical form of an IPv4 address, such as 127.0.0.1 for 2130706433 or 0x7f.1.
// Returns all other names unchanged.
std::string ipv4_of(std::string name) {
  in_addr address{};
  char text[INET_ADDRSTRLEN];
  if (name.empty() || !bh::is_digit(name[0]) ||
      inet_aton(without_empty_hex(name).c_str(), &address) == 0 ||
      inet_ntop(AF_INET, &address, text, sizeof text) == nullptr)
    return name;
  return text;
}

std::string host_of(std::string_view raw, const Special *special) {
  std::string name = escaped_once(raw);
  for (std::size_t i = 0; i < name.size(); ++i) {
    name[i] == '%' ? void(i += 2) : void(name[i] = bh::lower(name[i]));
  }
  if (name.starts_with('[') && name.ends_with(']')) return ipv6_of(std::move(name));
  if (special == nullptr) return name;
  while (name.size() > 1 && name.ends_with('.')) name.pop_back();
  if (!is_file(special)) return ipv4_of(std::move(name));
  return name == "localhost" ? std::string() : name;
}

// Returns the port with its colon, such as ":8080". Returns an empty string if the port is the
// scheme's default.
std::string port_of(std::string_view raw, const Special *special) {
  const std::string text = escaped_once(raw);
  std::string_view digits = text;
  while (digits.size() > 1 && digits.starts_with('0')) digits.remove_prefix(1);
  if (digits.empty() || (special != nullptr && digits == special->port)) return {};
  return ":" + std::string(digits);
}

struct Authority {
  std::string host, port;
};

// Parses USER@HOST:PORT and drops USER. For a special scheme other than "file", an authority
// without a host is invalid. In this case, USER is kept, because otherwise the path would be parsed
// as the host.
Authority authority_of(std::string_view text, const Special *special) {
  std::string_view place = text;
  if (const auto at = place.rfind('@'); at != std::string_view::npos) place.remove_prefix(at + 1);
  const std::size_t bracket = place.starts_with('[') ? place.find(']') : 0;
  const std::size_t colon = std::min(place.find(':', bracket), place.size());
  Authority out{host_of(place.substr(0, colon), special), {}};
  if (colon < place.size()) out.port = port_of(place.substr(colon + 1), special);
  const bool needs_host = special != nullptr && !is_file(special);
  if (out.host.empty() && needs_host) return {escaped_once(text), {}};
  return out;
}

// Consumes the authority of a URI. Returns false if there is none.
bool consume_authority(std::string_view *rest, const Special *special, Authority *out) {
  const auto count = static_cast<std::size_t>(
      std::find_if_not(rest->begin(), rest->end(), is_slash) - rest->begin());
  std::size_t slashes = 2;
  if (special != nullptr && !is_file(special)) {
    slashes = count;  // special schemes permit any number of slashes before the host
  } else if (special != nullptr ? count < 2 : !rest->starts_with("//")) {
    return false;
  }
  rest->remove_prefix(slashes);
  const std::size_t end =
      std::min(rest->find_first_of(special != nullptr ? "/\\?#" : "/?#"), rest->size());
  *out = authority_of(rest->substr(0, end), special);
  rest->remove_prefix(end);
  return true;
}

std::string path_of(std::string_view raw, const Special *special) {
  std::string path(raw);
  if (special == nullptr) return without_dots(escaped_once(path));
  std::replace(path.begin(), path.end(), '\\', '/');
  if (!path.starts_with('/')) path.insert(path.begin(), '/');
  path = escaped_once(path);
  if (!is_file(special)) return without_dots(path);
  // File systems ignore repeated slashes before they resolve "..".
  return without_dots(without_doubled_slashes(std::move(path)));
}

// Returns the query, such as "?x". Returns an empty string if the query is empty or the scheme is
// "file".
std::string query_of(std::string_view rest, const Special *special) {
  if (rest.size() < 2 || is_file(special)) return {};
  return escaped_once(rest);
}

}  // namespace

bool is_ambiguous_uri(std::string_view uri) {
  const std::string clean = cleaned(uri);
  const std::size_t tail = clean.find_first_of("?#");
  const std::size_t colon = scheme_end(clean);
  if (tail == std::string::npos) return false;
  if (colon != std::string_view::npos &&
      !is_file(special_of(bh::lowered(std::string_view(clean).substr(0, colon)))))
    return false;
  std::string text = clean.substr(tail + 1);
  std::replace(text.begin(), text.end(), '\\', '/');
  return has_parent_segment(escaped_once(text));
}

std::string normalized_uri(std::string_view uri) {
  const std::string clean = cleaned(uri);
  std::string_view rest = clean;
  rest = rest.substr(0, rest.find('#'));
  std::string out;
  const Special *special = nullptr;
  if (const std::size_t colon = scheme_end(rest); colon != std::string_view::npos) {
    out = bh::lowered(rest.substr(0, colon + 1));
    special = special_of(std::string_view(out).substr(0, colon));
    rest.remove_prefix(colon + 1);
  }
  Authority authority;
  const bool has_authority = consume_authority(&rest, special, &authority) || special != nullptr;
  if (has_authority) out += "//" + authority.host + authority.port;
  const std::size_t end = std::min(rest.find('?'), rest.size());
  const std::string path = path_of(rest.substr(0, end), special);
  if (!has_authority && path.starts_with("//"))
    out += "/.";  // otherwise, the path would be parsed as a host
  // Without this prefix, the start of the path would be parsed as a scheme.
  if (out.empty() && scheme_end(path) != std::string::npos) out = "./";
  return out + path + query_of(rest.substr(end), special);
}

std::string web_host(std::string_view url) {
  const std::size_t colon = url.find(':');
  if (colon == std::string_view::npos) return {};
  constexpr std::size_t longest = 64;  // maximum scheme length, including removed characters
  if (colon > longest && without_blanks(url.substr(0, colon)).size() > longest) return {};
  const Special *special = special_of(bh::lowered(cleaned(url.substr(0, colon))));
  if (special == nullptr || !special->scheme.starts_with("http")) return {};
  url.remove_prefix(colon + 1);
  const auto gap = [](char c) { return is_slash(c) || c == '\t' || c == '\r' || c == '\n'; };
  url.remove_prefix(
      static_cast<std::size_t>(std::find_if_not(url.begin(), url.end(), gap) - url.begin()));
  return authority_of(cleaned(url.substr(0, url.find_first_of("/\\?#"))), special).host;
}

}  // namespace bulkhead::rules
