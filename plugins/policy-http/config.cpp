#include "policy-http/config.hpp"

#include <rapidjson/document.h>

#include "egress-kit/config_values.hpp"

namespace policy_http {
namespace {

using Value = rapidjson::Value;

using egress::text_of;

constexpr egress::Number<Config> numbers[] = {
    {"preview_bytes", &Config::preview_bytes, 0, 1 << 20},
    {"cache_entries", &Config::cache_entries, 0, 65'536},
    {"cache_ttl_max_ms", &Config::cache_ttl_max_ms, 0, 3'600'000},
    {"max_in_flight", &Config::max_in_flight, 1, 1'000},
};

constexpr egress::Word<Config> subjects[] = {{"mcp.request", &Config::requests},
                                             {"mcp.response", &Config::responses}};

std::string read_style(const Value &value, Config *out) {
  const std::string_view name = value.IsString() ? text_of(value) : std::string_view();
  if (name != "hook" && name != "opa") return "style: must be \"hook\" or \"opa\"";
  out->style = name == "opa" ? Style::opa : Style::hook;
  return {};
}

std::string read_send(const Value &value, Config *out) {
  const std::string_view name = value.IsString() ? text_of(value) : std::string_view();
  if (name == "names") {
    out->send = Send::names;
  } else if (name == "hashes") {
    out->send = Send::hashes;
  } else if (name == "preview") {
    out->send = Send::preview;
  } else {
    return "send: must be \"names\", \"hashes\" or \"preview\"";
  }
  return {};
}

std::string read_key(std::string_view key, const Value &value, Config *out) {
  if (key == "style") return read_style(value, out);
  if (key == "send") return read_send(value, out);
  if (key == "on") return egress::read_words(key, subjects, value, out);
  for (const auto &number : numbers) {
    if (key == number.key) return number.read(value, out);
  }
  if (key == "profile_rules") {
    return "this policy does not evaluate the profile's rules: set rules = false here, and add a "
           "policy that does";
  }
  if (egress::endpoint_key(key)) return {};
  return std::string(key.substr(0, 64)) + ": unknown key";
}

}  // namespace

std::string Config::read(std::string_view json, Config *out) {
  rapidjson::Document root;
  if (std::string bad = egress::read_object(json, &root, out, read_key); !bad.empty()) return bad;
  return egress::read_endpoint(root, &out->server);
}

}  // namespace policy_http
