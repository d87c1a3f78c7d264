#include "embed/profile_prints.hpp"

#include <algorithm>
#include <utility>

#include "profile/secrets.hpp"

namespace bulkhead {
namespace {

using profiles::credential_name;
using profiles::credential_value;

// Adds a value, unless it consists of references: a disabled server's references are not expanded.
// If the value is "Bearer TOKEN" or similar, adds only the token.
void add_value(SecretPrints *prints, std::string_view value) {
  if (profiles::only_references(value)) return;
  const std::size_t space = value.find(' ');
  const bool scheme =
      space != value.npos && space <= 10 && value.find(' ', space + 1) == value.npos;
  prints->add(scheme ? value.substr(space + 1) : value);
}

void add_url(SecretPrints *prints, std::string_view url) {
  const std::size_t scheme = url.find("://");
  if (scheme == url.npos) return;
  std::string_view path = url.substr(scheme + 3, url.find_first_of("?#", scheme) - scheme - 3);
  path.remove_prefix(std::min(path.find('/'), path.size()));
  while (!path.empty()) {
    path.remove_prefix(1);
    const std::string_view part = path.substr(0, path.find('/'));
    if (profiles::token_like(part)) prints->add(part);
    path.remove_prefix(part.size());
  }
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

// Adds the values of options whose names suggest a credential, and the arguments that look like
// credentials, similar to masked_args(). JSON in arguments is not parsed.
void add_args(SecretPrints *prints, const std::vector<std::string> &args) {
  bool next = false;  // whether the previous argument was an option whose value is a credential
  for (const std::string &arg : args) {
    const std::size_t is = arg.find_first_of("=:");
    const bool option = arg.starts_with('-');
    const bool named = credential_name(std::string_view(arg).substr(0, is));
    if (next && !option) add_value(prints, arg);
    next = option && named && is == arg.npos;
    if (is != arg.npos && (named || credential_value(std::string_view(arg).substr(is + 1)))) {
      const std::string_view value = std::string_view(arg).substr(is + 1);
      add_value(prints, value.substr(std::min(value.find_first_not_of(' '), value.size())));
    }
    if (credential_value(arg)) prints->add(arg);
    add_url(prints, arg);
  }
}

}  // namespace

SecretPrints prints_of(const Profile &profile, std::string key) {
  SecretPrints out(std::move(key));
  for (const ServerDef &def : profile.servers) {
    for (const auto *values : {&def.env, &def.headers}) {
      for (const auto &[name, value] : *values) {
        if (credential_name(name) || credential_value(value)) add_value(&out, value);
        add_url(&out, value);
      }
    }
    add_args(&out, def.args);
    add_url(&out, def.url);
  }
  return out;
}

}  // namespace bulkhead
