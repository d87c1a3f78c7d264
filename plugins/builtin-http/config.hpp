// The configuration of this plugin, and its domain policy.
#pragma once

#include <bulkhead/cpp/basics.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace builtin_http {

inline constexpr std::string_view config_schema = R"({
  "type":"object","additionalProperties":false,
  "properties":{
    "allow":{"type":"array","maxItems":10000,"items":{"type":"string","minLength":1},
      "description":"Domains: a name, or *.name for every name below it, but not itself"},
    "block":{"type":"array","maxItems":10000,"items":{"type":"string","minLength":1},
      "description":"Domains that are refused, whatever allow says"},
    "default":{"type":"string","enum":["allow","deny"],
      "description":"For domains that neither list names; deny if allow is given, else allow"},
    "allow_private":{"type":"boolean",
      "description":"Also fetch from private, loopback and link-local addresses"},
    "max_body_bytes":{"type":"integer","minimum":1024,"maximum":104857600},
    "timeout_ms":{"type":"integer","minimum":100,"maximum":600000}
  }})";

struct Config {
  std::vector<std::string> allow;  // lower case
  std::vector<std::string> block;  // lower case
  bool default_allow = true;
  bool allow_private = false;
  std::uint64_t max_body_bytes = 5u << 20;
  std::uint64_t timeout_ms = 30'000;

  // May this host (lower case) be asked? Block list, then allow list, then default. Empty: yes;
  // else the reason.
  std::string refusal(std::string_view host) const;
};

// BH_E_INVALID says what is wrong.
bh_status parse_config(std::string_view json, Config *out, bh_error *error);

}  // namespace builtin_http
