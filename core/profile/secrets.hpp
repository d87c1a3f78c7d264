// What looks like a credential, and how it is shown. For core/profile, for what `bulkhead approve`
// shows, and for what a person is asked (route/shown_json.hpp).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::profiles {

inline constexpr std::string_view kMask = "***";

// By the name of a variable, header, key or command line option: token, key, secret, password ...
bool credential_name(std::string_view name);
// By the value: the prefixes of well-known tokens, user:password@ in a URL, "Bearer ...".
bool credential_value(std::string_view value);

// A part of a path or query: long, with several digits.
bool token_like(std::string_view part);

// A URL for people: user:password, the values of the query and path parts that look like tokens
// become "***". References (${env:...}) stay. Never fails, whatever the text is.
std::string masked_url(std::string_view url);
// A command line for people: values of options that look like credentials become "***".
std::vector<std::string> masked_args(const std::vector<std::string> &args);

// The environment variable for a value of a server that is asked for elsewhere: SERVER_KEY, or KEY
// where it begins with SERVER_, in capitals; what is no letter or digit becomes _. Never empty.
std::string variable_for(std::string_view server, std::string_view key);

}  // namespace bulkhead::profiles
