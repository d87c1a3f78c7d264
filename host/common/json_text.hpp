// JSON objects that are written as text, member after member: "{" first, "}" by whoever ends it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bulkhead::program {

// A string of any text.
void add_text(std::string *object, std::string_view name, std::string_view text);
void add_number(std::string *object, std::string_view name, std::uint64_t value);
// What is JSON already.
void add_json(std::string *object, std::string_view name, std::string_view json);

// A member of a valid JSON object that is a string; empty: it is not.
std::string text_member(std::string_view object, std::string_view key);

}  // namespace bulkhead::program
