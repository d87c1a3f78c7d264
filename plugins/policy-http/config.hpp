#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "egress-kit/endpoint.hpp"

namespace policy_http {

enum class Style : std::uint8_t { hook, opa };
// How arguments and results are sent to the decision point: not at all, as a digest, or as a digest
// and up to preview_bytes of text.
enum class Send : std::uint8_t { names, hashes, preview };

struct Config {
  egress::Endpoint server;
  Style style = Style::hook;
  Send send = Send::preview;
  bool requests = true, responses = false;  // events sent to the decision point
  std::uint64_t preview_bytes = 16'384;     // longer values are truncated and marked
  std::uint64_t cache_entries = 4'096;      // 0 disables the cache
  std::uint64_t cache_ttl_max_ms = 60'000;  // limits the time to live of each response
  std::uint64_t max_in_flight = 256;        // pending requests; additional calls are rejected

  // Reads the configuration. Returns an error that names the key, or an empty string on success.
  static std::string read(std::string_view json, Config *out);
};

}  // namespace policy_http
