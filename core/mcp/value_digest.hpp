// A digest of a JSON value that does not depend on its spelling.
//
// Clients that repeat a request serialize its arguments again. Texts with equal digests have the
// same value for every JSON reader:
// - white space between tokens does not matter;
// - the order of an object's members does not matter, except of members with the same name: readers
//   disagree about such members, so their order is kept;
// - strings are equal if their unescaped text is equal, without Unicode normalization; a string
// that
//   has both escapes and U+FFFD or a lone surrogate is compared as written;
// - numbers are equal if their exact values are (see json_number.hpp): 1, 1.0 and 10e-1 are, and
//   0.1 and 0.1000000000000000055 are not; -0 equals 0.
// In all doubtful cases, equal values may have different digests, but never the reverse.
//
// Thread-safe.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace bulkhead::mcp {

using ValueDigest = std::array<unsigned char, 32>;  // SHA-256 of a canonical form

// Returns nothing if the text is not one JSON value or has more than 128 levels. One pass without
// recursion. Memory: 48 bytes for each member of the objects that are open at the same time.
std::optional<ValueDigest> value_digest(std::string_view json);

}  // namespace bulkhead::mcp
