// Parses the text of a layer into a tree. Internal to the profile libraries.
#pragma once

#include <cstdint>

#include "profile/diagnostics.hpp"
#include "profile/tree.hpp"

namespace bulkhead::profiles {

struct ParseOptions {
  std::size_t max_bytes = kProfileBytes;
  std::size_t max_values = kProfileValues;
  // Whether a JSON object may contain the same name more than once. If so, the last member with the
  // name is used.
  bool duplicates = false;
};

// Parses a layer's text into a table. On failure, reports errors to `diagnostics` and returns
// false.
bool parse_layer(const ProfileLayer &layer, std::uint16_t index, const ParseOptions &options,
                 Node *out, Diagnostics &diagnostics);

// Parse one of the two formats. The caller must have checked that the text is not oversized and
// contains no NUL byte.
bool parse_json(const ProfileLayer &layer, std::uint16_t index, const ParseOptions &options,
                Node *out, Diagnostics &diagnostics);
bool parse_toml(const ProfileLayer &layer, std::uint16_t index, const ParseOptions &options,
                Node *out, Diagnostics &diagnostics);

// Returns true if parse_layer() parses the layer as JSON.
bool is_json(const ProfileLayer &layer);

}  // namespace bulkhead::profiles
