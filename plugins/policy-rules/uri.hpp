// Normalizes URIs so that equivalent URIs compare equal.
#pragma once

#include <string>
#include <string_view>

namespace bulkhead::rules {

// Returns the normalized form of a URI for comparisons in rules (docs/policy.md, "Normalized
// URIs"). Follows RFC 3986 (6.2) and the WHATWG URL standard. A string that is not a URI is treated
// as a path. Idempotent.
std::string normalized_uri(std::string_view uri);

// Returns true for a path or a file URI with a ".." segment after the first '?' or '#'. If a server
// does not remove the query and the fragment, it opens a different file than the one that
// normalized_uri() names.
bool is_ambiguous_uri(std::string_view uri);

// Returns the host of an http or https URL, normalized like the host in normalized_uri(). Returns
// an empty string for other strings.
std::string web_host(std::string_view url);

}  // namespace bulkhead::rules
