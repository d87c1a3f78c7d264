// Detection and masking of credentials, for `profile show`, `bulkhead approve`, and the arguments
// shown for human approval (route/shown_json.hpp).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::profiles {

inline constexpr std::string_view kMask = "***";

// Detects credentials by the name of a variable, header, key or command line option: token, key,
// secret, password ...
bool credential_name(std::string_view name);
// Detects credentials by the value: the prefixes of well-known tokens, user:password@ in a URL,
// "Bearer ...".
bool credential_value(std::string_view value);

// Detects a part of a path or query that is long and has several digits.
bool token_like(std::string_view part);

// Masks a URL for display: user:password, values of the query, and path parts that look like tokens
// become "***". References (${env:...}) stay. Accepts any text.
std::string masked_url(std::string_view url);
// Masks a command line for display: values of options that look like credentials become "***".
std::vector<std::string> masked_args(const std::vector<std::string> &args);

// The environment variable for a prompted value of a server: SERVER_KEY, or KEY if it begins with
// SERVER_, in capitals; other characters than letters and digits become _. Never empty.
std::string variable_for(std::string_view server, std::string_view key);

}  // namespace bulkhead::profiles
