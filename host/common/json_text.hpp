// JSON objects written as text, member by member; the caller writes "{" and "}".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bulkhead::program {

// Adds a string member; escapes the text.
void add_text(std::string *object, std::string_view name, std::string_view text);
void add_number(std::string *object, std::string_view name, std::uint64_t value);
// Adds a member whose value is JSON text.
void add_json(std::string *object, std::string_view name, std::string_view json);

// A string member of a valid JSON object; empty if it is missing or not a string.
std::string text_member(std::string_view object, std::string_view key);

}  // namespace bulkhead::program
