#include "formats/definition_differences.hpp"

#include <algorithm>
#include <map>
#include <string_view>

#include "profile/parse.hpp"
#include "profile/server.hpp"

namespace bulkhead::profiles {
namespace {

constexpr std::string_view kClientKeys[] = {"command", "args",    "env",        "cwd",
                                            "url",     "headers", "bearerToken"};

std::map<std::string_view, const Node *> keys_of_server(const Node &server) {
  std::map<std::string_view, const Node *> out;
  for (const Member &member : server.members) {
    if (const std::string_view key = server_key(member.name); !key.empty())
      out.emplace(key, &member.value);
  }
  return out;
}

bool same_value(const Node *a, const Node *b) {
  if (a == nullptr || b == nullptr) return a == b;
  std::string one, other;
  append_json(one, *a);
  append_json(other, *b);
  return one == other;
}

// Returns the server's type ("stdio", "http" or "sse"). If `type` is omitted, the other keys
// determine it.
std::string type_of(const Node &server, const std::map<std::string_view, const Node *> &keys) {
  const auto type = keys.find("type");
  if (type == keys.end()) return listed_type(server);
  const std::string_view known = canonical_type(type->second->text);
  return known.empty() ? type->second->text : std::string(known);
}

// Adds the key if the values differ. For env and headers, adds each differing member instead.
void add_differences(std::string_view key, const Node *here, const Node *there,
                     std::vector<std::string> *out) {
  static const Node none(Kind::table, {});
  if (key != "env" && key != "headers") {
    if (!same_value(here, there)) out->emplace_back(key);
    return;
  }
  const Node &a = here == nullptr ? none : *here, &b = there == nullptr ? none : *there;
  const auto add = [&](const Member &member) {
    std::string name = std::string(key) + '.' + member.name;
    if (same_value(a.find(member.name), b.find(member.name))) return;
    if (std::find(out->begin(), out->end(), name) == out->end()) out->push_back(std::move(name));
  };
  std::for_each(a.members.begin(), a.members.end(), add);
  std::for_each(b.members.begin(), b.members.end(), add);
}

}  // namespace

bool is_client_key(std::string_view key) noexcept {
  return std::find(std::begin(kClientKeys), std::end(kClientKeys), key) != std::end(kClientKeys);
}

std::vector<std::string> definition_differences(const Node &here, const Node &there) {
  const auto a = keys_of_server(here), b = keys_of_server(there);
  std::vector<std::string> out;
  for (const std::string_view key : server_keys()) {
    const auto in_a = a.find(key), in_b = b.find(key);
    const Node *mine = in_a == a.end() ? nullptr : in_a->second;
    const Node *theirs = in_b == b.end() ? nullptr : in_b->second;
    if (key == "type") {
      if (type_of(here, a) != type_of(there, b)) out.emplace_back(key);
    } else if (key != "disabled" && key != "enabled" && (theirs != nullptr || is_client_key(key))) {
      add_differences(key, mine, theirs, &out);
    }
  }
  return out;
}

std::optional<std::vector<std::string>> setting_differences(const Node &a, const Node &b) {
  std::vector<std::string> out = definition_differences(a, b);
  for (std::string &key : definition_differences(b, a))
    if (std::find(out.begin(), out.end(), key) == out.end()) out.push_back(std::move(key));
  for (const std::string &key : out) {
    const bool setting = !is_client_key(key.substr(0, key.find('.'))) && key != "type";
    if (!setting && !key.starts_with("headers.") && key != "bearerToken") return std::nullopt;
  }
  return out;
}

}  // namespace bulkhead::profiles
