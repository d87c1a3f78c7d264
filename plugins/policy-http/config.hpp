// The configuration of policy-http.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "egress-kit/endpoint.hpp"

namespace policy_http {

enum class Style : std::uint8_t { hook, opa };
// Representation of arguments and results in a question: absent, digest, or the text itself.
enum class Send : std::uint8_t { names, hashes, preview };

struct Config {
  egress::Endpoint server;
  Style style = Style::hook;
  Send send = Send::preview;
  bool requests = true, responses = false;  // events to ask about
  std::uint64_t preview_bytes = 16'384;     // larger texts are truncated and marked so
  std::uint64_t cache_entries = 4'096;      // 0: answers are not cached
  std::uint64_t cache_ttl_max_ms = 60'000;  // limit for the time to live of an answer
  std::uint64_t max_in_flight = 256;        // questions in flight; calls beyond are rejected

  // Reads the configuration. Returns the error with the key's name; empty: none.
  static std::string read(std::string_view json, Config *out);
};

}  // namespace policy_http
