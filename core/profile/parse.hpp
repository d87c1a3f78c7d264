// Parses text into a tree. Internal to the profile libraries.
#pragma once

#include <cstdint>

#include "profile/diagnostics.hpp"
#include "profile/tree.hpp"

namespace bulkhead::profiles {

struct ParseOptions {
  std::size_t max_bytes = kProfileBytes;
  std::size_t max_values = kProfileValues;
  bool duplicates = false;  // allow duplicate names in an object; the last one is used
};

// Parses a layer's text into a table. Returns false if errors were reported to `diagnostics`.
bool parse_layer(const ProfileLayer &layer, std::uint16_t index, const ParseOptions &options,
                 Node *out, Diagnostics &diagnostics);

// The parsers for the two formats. Callers must check the size and ensure that the text has no NUL
// byte.
bool parse_json(const ProfileLayer &layer, std::uint16_t index, const ParseOptions &options,
                Node *out, Diagnostics &diagnostics);
bool parse_toml(const ProfileLayer &layer, std::uint16_t index, const ParseOptions &options,
                Node *out, Diagnostics &diagnostics);

// Returns true if parse_layer() parses the layer as JSON.
bool is_json(const ProfileLayer &layer);

}  // namespace bulkhead::profiles
