// Detects and masks credentials, for example in the output of `profile show` and of
// `bulkhead approve`, and in the arguments that are displayed for human approval
// (route/shown_json.hpp).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::profiles {

inline constexpr std::string_view kMask = "***";

// Returns true if the name of a variable, header, key or command-line option suggests a credential:
// token, key, secret, password ...
bool credential_name(std::string_view name);
// Returns true if a value looks like a credential: it has the prefix of a well-known token,
// contains a URL with "user@" or "user:password@", or starts with "Bearer" or "Basic".
bool credential_value(std::string_view value);

// Returns the scheme of an Authorization value, including the space after it, or an empty view.
std::string_view auth_scheme(std::string_view value);
// Returns true if the value consists only of references without defaults, after an optional
// authorization scheme. Also true for an empty value.
bool only_references(std::string_view value);

// Returns true if a path segment or a query part is long and has several digits, like a token.
bool token_like(std::string_view part);

// Returns the position of the '@' that ends "user:password@" in a URL, or npos if there is none.
// `authority` is the position after "://". A password may contain slashes.
std::size_t userinfo_end(std::string_view url, std::size_t authority);

// Masks a URL for display: "***" replaces user:password, query values, the fragment, and path
// segments that look like tokens. References (${env:...}) are kept without their defaults. Accepts
// any text.
std::string masked_url(std::string_view url);
// Masks a command line for display: "***" replaces the values of options whose names suggest a
// credential, and arguments that look like credentials. References without defaults are kept.
std::vector<std::string> masked_args(const std::vector<std::string> &args);

// Returns the name of the environment variable from which the gateway reads a value for which an
// editor would prompt the user. The name is SERVER_KEY, or KEY if KEY already starts with SERVER_.
// Letters become uppercase, and all characters except letters and digits become '_'. If the name
// would begin with a digit, it is prefixed with '_'. Never empty.
std::string variable_for(std::string_view server, std::string_view key);

}  // namespace bulkhead::profiles
