// One spelling for the URIs that RFC 3986 calls the same.
#pragma once

#include <string>
#include <string_view>

namespace bulkhead::rules {

// Syntax-based normalization (RFC 3986, 6.2.2): scheme and host in small letters, %41 as A where
// the character is unreserved, other escapes in capitals, `.` and `..` taken out of the path. Not
// what depends on the scheme (ports, empty paths), nor what a server makes of it beyond: symbolic
// links, the case of file names, doubled slashes, query. A text that is no URI is treated as a
// path. Escapes are resolved once: `%252e` stays `%252e`.
std::string normalized_uri(std::string_view uri);

}  // namespace bulkhead::rules
