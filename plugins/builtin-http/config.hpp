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
      "description":"Allowed domains: a name, or *.name for its subdomains only; optional :port"},
    "block":{"type":"array","maxItems":10000,"items":{"type":"string","minLength":1},
      "description":"Blocked domains; takes precedence over allow"},
    "default":{"type":"string","enum":["allow","deny"],
      "description":"For domains in neither list; the default is deny if allow is given, otherwise allow"},
    "allow_private":{"type":"boolean",
      "description":"Also fetch from private, loopback and link-local addresses"},
    "allow_addresses":{"type":"array","maxItems":1000,"items":{"type":"string","minLength":1},
      "description":"Additional networks to fetch from, like 10.1.0.0/16"},
    "methods":{"type":"array","maxItems":6,
      "items":{"type":"string","enum":["get","post","put","patch","delete","head"]},
      "description":"Methods to offer as tools http_get, http_post and so on"},
    "max_body_bytes":{"type":"integer","minimum":1024,"maximum":104857600},
    "cache_bytes":{"type":"integer","minimum":0,"maximum":104857600},
    "timeout_ms":{"type":"integer","minimum":100,"maximum":600000}
  }})";

struct Config {
  DomainRules domains;
  AddressRules addresses;
  std::vector<std::string> methods;  // of the enabled method tools, such as "get"
  std::uint64_t max_body_bytes = 5u << 20;
  std::uint64_t cache_bytes = 8u << 20;  // 0 disables the cache
  std::uint64_t timeout_ms = 30'000;     // time limit for the requests of a call

  // Checks a URL against the domain rules. If its host is an IP address, also checks the address.
  // Returns an error message that contains "blocked", or an empty string if the URL is allowed.
  std::string refusal(const Url &url) const;
};

// Returns BH_E_INVALID and sets *error if the configuration is invalid.
bh_status parse_config(std::string_view json, Config *out, bh_error *error);

}  // namespace builtin_http
