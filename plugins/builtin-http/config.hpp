// The configuration of this plugin.
#pragma once

#include <bulkhead/cpp/basics.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "builtin-http/address.hpp"
#include "builtin-http/domain_rules.hpp"

namespace builtin_http {

inline constexpr std::string_view config_schema = R"({
  "type":"object","additionalProperties":false,
  "properties":{
    "allow":{"type":"array","maxItems":10000,"items":{"type":"string","minLength":1},
      "description":"Domains: a name, or *.name for every name below it, but not itself; :port"},
    "block":{"type":"array","maxItems":10000,"items":{"type":"string","minLength":1},
      "description":"Domains that are refused, whatever allow says"},
    "default":{"type":"string","enum":["allow","deny"],
      "description":"For domains that neither list names; deny if allow is given, else allow"},
    "allow_private":{"type":"boolean",
      "description":"Also fetch from private, loopback and link-local addresses"},
    "allow_addresses":{"type":"array","maxItems":1000,"items":{"type":"string","minLength":1},
      "description":"Networks to fetch from beside the public Internet, like 10.1.0.0/16"},
    "methods":{"type":"array","maxItems":6,
      "items":{"type":"string","enum":["get","post","put","patch","delete","head"]},
      "description":"Also offer http_get, http_post and so on"},
    "max_body_bytes":{"type":"integer","minimum":1024,"maximum":104857600},
    "cache_bytes":{"type":"integer","minimum":0,"maximum":104857600},
    "timeout_ms":{"type":"integer","minimum":100,"maximum":600000}
  }})";

struct Config {
  DomainRules domains;
  AddressRules addresses;
  std::vector<std::string> methods;  // "get", "post", ...: the tools http_get, http_post, ...
  std::uint64_t max_body_bytes = 5u << 20;
  std::uint64_t cache_bytes = 8u << 20;  // 0: no cache
  std::uint64_t timeout_ms = 30'000;     // for one call, redirects included

  // May url be asked, as far as its text tells? Empty: yes; else a sentence that says "blocked".
  std::string refusal(const Url &url) const;
};

// BH_E_INVALID says what is wrong.
bh_status parse_config(std::string_view json, Config *out, bh_error *error);

}  // namespace builtin_http
