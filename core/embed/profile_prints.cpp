#include "embed/profile_prints.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "bulkhead/cpp/decoded.hpp"
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

// Adds the credentials in JSON text: strings that look like credentials, and all strings and
// numbers in the values of members whose names suggest a credential. The text may be malformed,
// because masked_args() masks it nevertheless.
class JsonValues {
 public:
  JsonValues(SecretPrints *prints, std::string_view json) : prints_(prints), rest_(json) {}

  void add() {
    while (!rest_.empty()) {
      const char c = rest_[0];
      if (c == '"') {
        add_string();
        continue;
      }
      const std::size_t n = std::min(rest_.find_first_of("{}[]:,\" \t\r\n"), rest_.size());
      if (n != 0) add_literal(rest_.substr(0, n));
      if (n == 0) punctuate(c);
      rest_.remove_prefix(std::max<std::size_t>(n, 1));
    }
  }

 private:
  void punctuate(char c) {
    if (c == '{' || c == '[') open_.push_back(secret_);
    if ((c == '}' || c == ']') && !open_.empty()) open_.pop_back();
    // Between two members or items, only the enclosing object or array matters.
    if (c == ',' || c == '}' || c == ']') secret_ = !open_.empty() && open_.back();
  }

  void add_string() {
    std::size_t end = 1;
    while (end < rest_.size() && rest_[end] != '"') end += rest_[end] == '\\' ? 2 : 1;
    end = std::min(end, rest_.size());
    const std::string_view escaped = rest_.substr(1, end - 1);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    const auto decoded = bh::Decoded::of(escaped, bh::Decoded::Layer::json);
    const std::string_view text = decoded ? decoded->text() : escaped;
    const std::size_t next = rest_.find_first_not_of(" \t\r\n");
    if (next != rest_.npos && rest_[next] == ':') {
      secret_ = secret_ || credential_name(text);
      return;
    }
    if (secret_ || credential_value(text)) add_value(prints_, text);
    add_url(prints_, text);
  }

  void add_literal(std::string_view text) {
    if (secret_) prints_->add(text);
  }

  SecretPrints *const prints_;
  std::string_view rest_;
  bool secret_ = false;     // the next value is a credential or contains only credentials
  std::vector<bool> open_;  // the same for each open object and array
};

void add_json(SecretPrints *prints, std::string_view text) {
  if (text.starts_with('{') || text.starts_with('[')) JsonValues(prints, text).add();
}

// Adds the command-line values that masked_args() would mask.
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
    add_json(prints, arg);
    if (option && is != arg.npos) add_json(prints, std::string_view(arg).substr(is + 1));
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
        add_json(&out, value);
      }
    }
    add_args(&out, def.args);
    add_url(&out, def.url);
  }
  return out;
}

}  // namespace bulkhead
