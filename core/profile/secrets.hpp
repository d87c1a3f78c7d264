// Detects and masks credentials, for `profile show`, `bulkhead approve`, and the arguments
// displayed for human approval (route/shown_json.hpp).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::profiles {

inline constexpr std::string_view kMask = "***";

// Detects a credential by the name of a variable, header, key or command-line option: token, key,
// secret, password ...
bool credential_name(std::string_view name);
// Detects a credential by its value: the prefix of a well-known token, user:password@ in a URL,
// "Bearer ...".
bool credential_value(std::string_view value);

// Detects a path segment or a query part that is long and has several digits.
bool token_like(std::string_view part);

// Masks a URL for display: user:password, query values, and path segments that look like tokens
// become "***". References (${env:...}) are kept. Accepts any text.
std::string masked_url(std::string_view url);
// Masks a command line for display: values of options whose names look like credentials become
// "***".
std::vector<std::string> masked_args(const std::vector<std::string> &args);

// Returns the name of the environment variable that replaces a value for which an editor would
// prompt: SERVER_KEY, or KEY if it starts with SERVER_. Letters become upper case, and all other
// characters except digits become '_'. Never empty.
std::string variable_for(std::string_view server, std::string_view key);

}  // namespace bulkhead::profiles
