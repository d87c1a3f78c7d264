#include "builtin-http/config.hpp"

#include <rapidjson/document.h>

#include <algorithm>

namespace builtin_http {
namespace {

using Value = rapidjson::Value;

// Reads the optional string array `name` by calling read(text, &item) for each element. Returns
// false if the array or an element is invalid.
template <class Item, class Read>
bool read_list(const Value &root, const char *name, std::vector<Item> *out, Read read) {
  const auto it = root.FindMember(name);
  if (it == root.MemberEnd()) return true;
  if (!it->value.IsArray()) return false;
  for (const Value &v : it->value.GetArray()) {
    Item item;
    if (!v.IsString() || !read(std::string_view(v.GetString(), v.GetStringLength()), &item)) {
      return false;
    }
    out->push_back(std::move(item));
  }
  return true;
}

bool read_number(const Value &root, const char *name, std::uint64_t min, std::uint64_t max,
                 std::uint64_t *out) {
  const auto it = root.FindMember(name);
  if (it == root.MemberEnd()) return true;
  if (!it->value.IsUint64()) return false;
  *out = it->value.GetUint64();
  return *out >= min && *out <= max;
}

bool read_method(std::string_view text, std::string *out) {
  static constexpr std::string_view known[] = {"get", "post", "put", "patch", "delete", "head"};
  *out = text;
  return std::find(std::begin(known), std::end(known), text) != std::end(known);
}

// Returns the error, or an empty string on success.
std::string read_domains(const Value &root, DomainRules *out) {
  if (!read_list(root, "allow", &out->allow, DomainPattern::parse) ||
      !read_list(root, "block", &out->block, DomainPattern::parse)) {
    return "allow and block must be arrays of names like example.com, *.example.com or a.test:8080";
  }
  out->default_allow = out->allow.empty();
  const auto it = root.FindMember("default");
  if (it == root.MemberEnd()) return {};
  out->default_allow = it->value == "allow";
  if (out->default_allow || it->value == "deny") return {};
  return "default must be \"allow\" or \"deny\"";
}

std::string read_addresses(const Value &root, AddressRules *out) {
  if (const auto it = root.FindMember("allow_private"); it != root.MemberEnd()) {
    if (!it->value.IsBool()) return "allow_private must be true or false";
    out->any = it->value.GetBool();
  }
  if (read_list(root, "allow_addresses", &out->allowed, Network::parse)) return {};
  return "allow_addresses must be an array of networks like 10.1.0.0/16 or fd00:1::/32";
}

std::string read_bounds(const Value &root, Config *out) {
  if (!read_number(root, "max_body_bytes", 1024, 100u << 20, &out->max_body_bytes)) {
    return "max_body_bytes must be from 1024 to 104857600";
  }
  if (!read_number(root, "cache_bytes", 0, 100u << 20, &out->cache_bytes)) {
    return "cache_bytes must be from 0 to 104857600";
  }
  if (!read_number(root, "timeout_ms", 100, 600'000, &out->timeout_ms)) {
    return "timeout_ms must be from 100 to 600000";
  }
  return {};
}

}  // namespace

std::string Config::refusal(const Url &url) const {
  std::string refusal = domains.refusal(url);
  if (!refusal.empty() || !url.host.is_address || addresses.permit(url.host.name)) return refusal;
  return "the address " + url.host.name + " is blocked: it is not a public Internet address";
}

bh_status parse_config(std::string_view json, Config *out, bh_error *error) {
  rapidjson::Document root;
  root.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag>(
      json.empty() ? "{}" : json.data(), json.empty() ? 2 : json.size());
  if (root.HasParseError() || !root.IsObject()) {
    return bh::fail(error, BH_E_INVALID, "the configuration is not a JSON object");
  }
  std::string wrong = read_domains(root, &out->domains);
  if (wrong.empty()) wrong = read_addresses(root, &out->addresses);
  if (wrong.empty()) wrong = read_bounds(root, out);
  if (wrong.empty() && !read_list(root, "methods", &out->methods, read_method)) {
    wrong = "methods must be an array with values from get, post, put, patch, delete and head";
  }
  return wrong.empty() ? BH_OK : bh::fail(error, BH_E_INVALID, wrong);
}

}  // namespace builtin_http
