#include "embed/profile_prints.hpp"

#include <algorithm>
#include <utility>

#include "profile/secrets.hpp"

namespace bulkhead {
namespace {

using profiles::credential_name;
using profiles::credential_value;

// "Bearer TOKEN": both together say nothing that the second does not.
void add_value(SecretPrints *prints, std::string_view value) {
  const std::size_t space = value.find(' ');
  const bool scheme =
      space != value.npos && space <= 10 && value.find(' ', space + 1) == value.npos;
  prints->add(scheme ? value.substr(space + 1) : value);
}

void add_url(SecretPrints *prints, std::string_view url) {
  const std::size_t scheme = url.find("://");
  if (scheme == url.npos) return;
  const std::string_view authority =
      url.substr(scheme + 3, url.find_first_of("/?#", scheme + 3) - scheme - 3);
  const std::size_t at = authority.rfind('@'), colon = authority.find(':');
  if (at != authority.npos && colon < at) prints->add(authority.substr(colon + 1, at - colon - 1));
  std::size_t query = url.find('?');
  while (query != url.npos) {
    const std::size_t end = std::min(url.find_first_of("&#", query + 1), url.size());
    const std::string_view pair = url.substr(query + 1, end - query - 1);
    const std::size_t is = pair.find('=');
    if (is != pair.npos &&
        (credential_name(pair.substr(0, is)) || profiles::token_like(pair.substr(is + 1)))) {
      prints->add(pair.substr(is + 1));
    }
    query = end < url.size() && url[end] == '&' ? end : url.npos;
  }
}

}  // namespace

SecretPrints prints_of(const Profile &profile, std::string key) {
  SecretPrints out(std::move(key));
  for (const ServerDef &def : profile.servers) {
    for (const auto *values : {&def.env, &def.headers}) {
      for (const auto &[name, value] : *values) {
        if (credential_name(name) || credential_value(value)) add_value(&out, value);
      }
    }
    for (const std::string &arg : def.args) {
      const std::size_t is = arg.find('=');
      if (is != arg.npos && credential_name(arg.substr(0, is))) out.add(arg.substr(is + 1));
      if (credential_value(arg)) out.add(arg);
    }
    add_url(&out, def.url);
  }
  return out;
}

}  // namespace bulkhead
