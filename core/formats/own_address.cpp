#include "formats/own_address.hpp"

#include <algorithm>

#include "bulkhead/cpp/text.hpp"

namespace bulkhead {
namespace {

std::string_view last_part(std::string_view path) {
  return path.substr(path.find_last_of('/') + 1);
}

std::string_view port_of(std::string_view authority) {
  const std::size_t colon = authority.rfind(':');
  const std::size_t bracket = authority.rfind(']');
  if (colon == authority.npos || (bracket != authority.npos && bracket > colon)) return {};
  return authority.substr(colon + 1);
}

bool is_own_host(std::string_view host) {
  for (const std::string_view name : {"localhost", "localhost.", "0.0.0.0", "[::1]", "[::]"})
    if (bh::equal_ignoring_case(host, name)) return true;
  return host.starts_with("127.") && host.find_first_not_of("0123456789.") == host.npos;
}

// `rest` follows the "://" of an http or https URL.
bool is_own_url(std::string_view rest, std::string_view default_port,
                const std::vector<std::string> &listens) {
  std::string_view authority = rest.substr(0, rest.find_first_of("/?#\"' \t\r\n"));
  authority = authority.substr(authority.rfind('@') + 1);
  std::string_view port = port_of(authority);
  const std::string_view host =
      authority.substr(0, authority.size() - (port.empty() ? 0 : port.size() + 1));
  if (!is_own_host(host)) return false;
  if (port.empty()) port = default_port;
  return std::any_of(listens.begin(), listens.end(),
                     [&](const std::string &listen) { return port_of(listen) == port; });
}

bool has_own_url(std::string_view word, const std::vector<std::string> &listens) {
  for (std::size_t at = word.find("://"); at != word.npos; at = word.find("://", at + 3)) {
    const std::string before = bh::lowered(word.substr(0, at));
    const bool secure = before.ends_with("https");
    if (!secure && !before.ends_with("http")) continue;
    if (is_own_url(word.substr(at + 3), secure ? "443" : "80", listens)) return true;
  }
  return false;
}

// Returns true if the words run `bulkhead` with the command `stdio`: after the program, `stdio`
// must be the first word that is neither an option nor an option's value. The value of an option is
// not a program either, as in "--directory ~/bulkhead". A shell command is a single word, so each
// word is split.
bool runs_bulkhead_stdio(const std::vector<std::string_view> &words) {
  bool program = false, option = false;
  for (std::string_view word : words) {
    while (!word.empty()) {
      const std::size_t end = std::min(word.find_first_of(" \t\r\n\"';|&()<>`"), word.size());
      const std::string_view part = word.substr(0, end);
      word.remove_prefix(std::min(end + 1, word.size()));
      if (part.empty()) continue;
      if (program && !option && part == "stdio") return true;
      const bool is_option = part.starts_with('-');
      if (!is_option && !option) program = last_part(part) == "bulkhead";
      option = is_option && part != "-c" && part.find('=') == part.npos;
    }
  }
  return false;
}

}  // namespace

bool is_this_gateway(const std::vector<std::string_view> &words,
                     const std::vector<std::string> &listens) {
  const bool url = !words.empty() && words.front().find("://") != std::string_view::npos;
  if (!words.empty() && !url && last_part(words.front()) == "bulkhead") return true;
  return runs_bulkhead_stdio(words) ||
         std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return has_own_url(word, listens); });
}

}  // namespace bulkhead
