// Parsers: text into a tree. Internal to the rooms of profiles.
#pragma once

#include <cstdint>

#include "profile/diagnostics.hpp"
#include "profile/tree.hpp"

namespace bulkhead::profiles {

struct ParseOptions {
  std::size_t max_bytes = kProfileBytes;
  std::size_t max_values = kProfileValues;
  bool duplicates = false;  // names in an object; false: an error; true: the last one wins
};

// Reads a layer's text into a table. False after reporting to `diagnostics`.
bool parse_layer(const ProfileLayer &layer, std::uint16_t index, const ParseOptions &options,
                 Node *out, Diagnostics &diagnostics);

// The two formats; callers have checked the size and that there is no NUL byte.
bool parse_json(const ProfileLayer &layer, std::uint16_t index, const ParseOptions &options,
                Node *out, Diagnostics &diagnostics);
bool parse_toml(const ProfileLayer &layer, std::uint16_t index, const ParseOptions &options,
                Node *out, Diagnostics &diagnostics);

// True if parse_layer() takes it for JSON.
bool is_json(const ProfileLayer &layer);

}  // namespace bulkhead::profiles
