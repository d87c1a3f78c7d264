#include "builtin-http/config.hpp"

#include <rapidjson/document.h>

namespace builtin_http {
namespace {

using Value = rapidjson::Value;

bool read_domains(const Value &root, const char *name, std::vector<std::string> *out) {
  const auto it = root.FindMember(name);
  if (it == root.MemberEnd()) return true;
  if (!it->value.IsArray()) return false;
  for (const Value &v : it->value.GetArray()) {
    if (!v.IsString() || v.GetStringLength() == 0) return false;
    std::string domain(v.GetString(), v.GetStringLength());
    for (char &c : domain) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    if (domain.size() > 1 && domain.back() == '.') domain.pop_back();
    // A pattern that looks as if it did more than it does would be a hole.
    const std::string_view rest = std::string_view(domain).substr(domain.starts_with("*.") ? 2 : 0);
    if (rest.empty() || rest.find_first_of("*/ ") != rest.npos) return false;
    out->push_back(std::move(domain));
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

bool matches(std::string_view pattern, std::string_view host) {
  if (!pattern.starts_with("*.")) return pattern == host;
  const std::string_view suffix = pattern.substr(1);  // with its dot: the apex does not match
  return host.size() > suffix.size() && host.ends_with(suffix);
}

const std::string *find(const std::vector<std::string> &patterns, std::string_view host) {
  for (const std::string &p : patterns) {
    if (matches(p, host)) return &p;
  }
  return nullptr;
}

}  // namespace

std::string Config::refusal(std::string_view host) const {
  const std::string name = "the domain " + std::string(host) + " is blocked";
  if (const std::string *p = find(block, host)) return name + " by the block list entry " + *p;
  if (default_allow || find(allow, host) != nullptr) return {};
  return name + ": it is not on the allow list";
}

bh_status parse_config(std::string_view json, Config *out, bh_error *error) {
  const auto invalid = [&](std::string_view what) { return bh::fail(error, BH_E_INVALID, what); };
  rapidjson::Document root;
  root.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag>(
      json.empty() ? "{}" : json.data(), json.empty() ? 2 : json.size());
  if (root.HasParseError() || !root.IsObject()) {
    return invalid("the configuration is not a JSON object");
  }
  if (!read_domains(root, "allow", &out->allow) || !read_domains(root, "block", &out->block)) {
    return invalid("allow and block are arrays of names like example.com or *.example.com");
  }
  out->default_allow = out->allow.empty();
  if (const auto it = root.FindMember("default"); it != root.MemberEnd()) {
    const bool allow = it->value == "allow";
    if (!allow && it->value != "deny") return invalid("default must be \"allow\" or \"deny\"");
    out->default_allow = allow;
  }
  if (const auto it = root.FindMember("allow_private"); it != root.MemberEnd()) {
    if (!it->value.IsBool()) return invalid("allow_private must be true or false");
    out->allow_private = it->value.GetBool();
  }
  if (!read_number(root, "max_body_bytes", 1024, 100u << 20, &out->max_body_bytes)) {
    return invalid("max_body_bytes must be from 1024 to 104857600");
  }
  if (!read_number(root, "timeout_ms", 100, 600'000, &out->timeout_ms)) {
    return invalid("timeout_ms must be from 100 to 600000");
  }
  return BH_OK;
}

}  // namespace builtin_http
