// Builds the structuredContent of results and the outputSchema of tools.
#pragma once

#include <string>
#include <string_view>

#include "builtin-http/message.hpp"
#include "builtin-http/paging.hpp"

namespace builtin_http {

// Returns an outputSchema for an object with these properties. `required` contains quoted property
// names, separated by commas.
std::string output_schema(std::string_view required, std::string_view properties);

// Returns the members "url":...,"status":...,"headers":[...] of a response. Header values are
// formatted as in head_text(). head_properties is the schema of these members.
std::string head_members(const Response &response);
extern const std::string_view head_properties;

// Returns the members "content_length":...,"start_index":...,"next_start_index":... and a member
// called `name`, which contains the part of the text. part_properties() returns the schema of these
// members.
std::string part_members(std::string_view name, std::string_view text, const Part &part);
std::string part_properties(std::string_view name);

}  // namespace builtin_http
