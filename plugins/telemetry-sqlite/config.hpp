#pragma once

#include <bulkhead/cpp/basics.hpp>

#include <cstdint>
#include <string_view>

namespace telemetry_sqlite {

struct Config {
  bool full = false;   // mode "full": messages are sent after their records are committed
  bool block = false;  // on_failure "block": calls are rejected if records cannot be stored
  bool texts = true;   // record the contents of requests and responses
  bool rejected_arguments = false;  // also record the arguments of rejected calls
  std::uint64_t flush_ms = 250;
  std::uint64_t checkpoint_rows = 1'000;
  std::uint64_t segment_bytes = 256u << 20;
  std::uint64_t max_bytes = 2ull << 30;   // per chain
  std::uint64_t retention_days = 0;       // 0 keeps files until max_bytes is exceeded
  std::uint64_t spill_bytes = 16u << 20;  // disk space reserved for the spill file at start
};

inline constexpr std::string_view config_schema = R"json({
  "type":"object","additionalProperties":false,"properties":{
    "mode":{"type":"string","enum":["batch","full"]},
    "on_failure":{"type":"string","enum":["spill","block"]},
    "texts":{"type":"boolean"},
    "rejected_arguments":{"type":"boolean"},
    "flush_ms":{"type":"integer","minimum":10,"maximum":10000},
    "checkpoint_rows":{"type":"integer","minimum":1,"maximum":1000000},
    "segment_bytes":{"type":"integer","minimum":262144,"maximum":68719476736},
    "max_bytes":{"type":"integer","minimum":1048576,"maximum":1099511627776},
    "retention_days":{"type":"integer","minimum":0,"maximum":36500},
    "spill_bytes":{"type":"integer","minimum":65536,"maximum":1073741824}}})json";

// Parses a configuration that the host has validated against the schema. Checks the constraints
// that the schema cannot express.
bh_status parse_config(std::string_view json, Config *out, bh_error *error);

}  // namespace telemetry_sqlite
