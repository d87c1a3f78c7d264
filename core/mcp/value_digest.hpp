// A digest of a JSON value that does not depend on how the value is spelled.
//
// When a client repeats a request, it serializes the arguments again. Texts with equal digests have
// the same value for every JSON reader:
// - White space between tokens does not matter.
// - The order of an object's members does not matter, except that members with the same name keep
//   their order: readers disagree about such members.
// - Strings are equal if their unescaped text is equal, without Unicode normalization. A string
//   that has both escape sequences and U+FFFD or a lone surrogate is compared as written.
// - Numbers are equal if their exact values are equal (see json_number.hpp): 1, 1.0 and 10e-1 are
//   equal, but 0.1 and 0.1000000000000000055 are not. -0 equals 0.
//
// To limit the time on the reactor thread (about 10 ms), a text of more than max_canonical_bytes,
// or with more than max_canonical_marks commas and colons, is compared as written. SDKs write the
// same value in the same way each time.
//
// In all doubtful cases, equal values may have different digests, but different values never have
// the same digest.
//
// Thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace bulkhead::mcp {

using ValueDigest = std::array<unsigned char, 32>;  // BLAKE2b of a canonical form

inline constexpr std::size_t max_canonical_bytes = 1u << 20;
inline constexpr std::ptrdiff_t max_canonical_marks = 8192;

// Returns nullopt if the text is not a single JSON value or has more than 128 levels. A text that
// is compared as written is not checked. Runs in one pass without recursion. Needs 48 bytes of
// memory for each member of the objects that are open at the same time.
std::optional<ValueDigest> value_digest(std::string_view json);

}  // namespace bulkhead::mcp
