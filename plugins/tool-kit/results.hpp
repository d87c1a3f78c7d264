// The `result` of a tools/call as JSON text.
//
// Thread: any. Exceptions: only for memory.
#pragma once

#include <string>
#include <string_view>

namespace tool_kit {

// Appends text as a JSON string, with quotes. What is not UTF-8 becomes U+FFFD.
void append_quoted(std::string *out, std::string_view text);
std::string quoted(std::string_view text);

// Is all of it UTF-8 (RFC 3629)?
bool is_utf8(std::string_view text);

// text with U+FFFD in place of what is not UTF-8.
std::string repaired(std::string_view text);

// The largest n <= limit at which text can be cut without splitting a character. Text that is not
// UTF-8 is cut anywhere.
std::size_t cut_at(std::string_view text, std::size_t limit);

// {"content":[{"type":"text","text":...}]}; structured: the JSON text of structuredContent, or
// empty.
std::string text_result(std::string_view text, std::string_view structured = {});

// As text_result, with isError and "Error: " before the sentence, for the model to read.
std::string error_result(std::string_view sentence);

}  // namespace tool_kit
