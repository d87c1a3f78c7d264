// One spelling for the URIs that name the same thing.
#pragma once

#include <string>
#include <string_view>

namespace bulkhead::rules {

// The one spelling of a URI that rules compare (docs/policy.md, "Normalized URIs"): what RFC 3986
// (6.2) and the WHATWG URL standard call the same. A text that is no URI is treated as a path. The
// normalized spelling of a normalized URI is itself.
std::string normalized_uri(std::string_view uri);

// The host of an http or https URL, as normalized_uri() has it; "" if the text is no such URL.
std::string web_host(std::string_view url);

}  // namespace bulkhead::rules
