// Writes the `result` of a tools/call as JSON text.
//
// Thread: any. Exceptions: std::bad_alloc only.
#pragma once

#include <string>
#include <string_view>

namespace tool_kit {

// Appends text as a JSON string, with quotes. Invalid UTF-8 becomes U+FFFD.
void append_quoted(std::string *out, std::string_view text);
std::string quoted(std::string_view text);

// True if the text is valid UTF-8 (RFC 3629).
bool is_utf8(std::string_view text);

// The text with invalid UTF-8 replaced by U+FFFD.
std::string repaired(std::string_view text);

// The largest n <= limit at which text can be cut between characters. Invalid UTF-8 is cut
// anywhere.
std::size_t cut_at(std::string_view text, std::size_t limit);

// {"content":[{"type":"text","text":...}]}; structured: the JSON text of structuredContent, or
// empty.
std::string text_result(std::string_view text, std::string_view structured = {});

// Like text_result, with isError and "Error: " before the sentence, which the model reads.
std::string error_result(std::string_view sentence);

}  // namespace tool_kit
