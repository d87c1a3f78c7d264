// What a profile says to policy-http.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "egress-kit/endpoint.hpp"

namespace policy_http {

enum class Style : std::uint8_t { hook, opa };
// What of arguments and results leaves the process: nothing, their digest, or they themselves.
enum class Send : std::uint8_t { names, hashes, preview };

struct Config {
  egress::Endpoint server;
  Style style = Style::hook;
  Send send = Send::preview;
  bool requests = true, responses = false;  // what is asked about
  std::uint64_t preview_bytes = 16'384;     // larger texts are cut, and say so
  std::uint64_t cache_entries = 4'096;      // 0: answers are not kept
  std::uint64_t cache_ttl_max_ms = 60'000;  // however long an answer says that it holds
  std::uint64_t max_in_flight = 256;        // questions at a time; more are refused

  // What is wrong, with the key's name; empty: nothing.
  static std::string read(std::string_view json, Config *out);
};

}  // namespace policy_http
