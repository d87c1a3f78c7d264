// structuredContent of results, and the outputSchema of each tool.
#pragma once

#include <string>
#include <string_view>

#include "builtin-http/message.hpp"
#include "builtin-http/paging.hpp"

namespace builtin_http {

// Returns an outputSchema: an object with these properties. `required` contains their quoted names,
// separated by commas.
std::string output_schema(std::string_view required, std::string_view properties);

// Returns the members "url":...,"status":...,"headers":[...] for a response, as in head_text().
// head_properties is their schema.
std::string head_members(const Response &response);
extern const std::string_view head_properties;

// Returns the members "content_length":...,"start_index":...,"next_start_index":... and NAME. NAME
// contains the part of the text. part_properties() returns their schema.
std::string part_members(std::string_view name, std::string_view text, const Part &part);
std::string part_properties(std::string_view name);

}  // namespace builtin_http
