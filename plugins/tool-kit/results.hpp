// Writes the `result` of a tools/call request as JSON.
//
// Thread-safe. Throws only std::bad_alloc.
#pragma once

#include <string>
#include <string_view>

namespace tool_kit {

// Returns {"content":[{"type":"text","text":...}]}. `structured` is the JSON of structuredContent,
// or empty.
std::string text_result(std::string_view text, std::string_view structured = {});

// Returns an error result: isError is set, and the text is "Error: " and the sentence, which the
// model reads.
std::string error_result(std::string_view sentence);

}  // namespace tool_kit
