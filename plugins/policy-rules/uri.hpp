// Normalizes URIs, so equivalent spellings compare equal.
#pragma once

#include <string>
#include <string_view>

namespace bulkhead::rules {

// Returns the normalized form of a URI for comparisons in rules (docs/policy.md, "Normalized
// URIs"), according to RFC 3986 (6.2) and the WHATWG URL standard. Other text is treated as a path.
// Idempotent.
std::string normalized_uri(std::string_view uri);

// Returns the host of an http or https URL, normalized as in normalized_uri(). Returns an empty
// string for other text.
std::string web_host(std::string_view url);

}  // namespace bulkhead::rules
