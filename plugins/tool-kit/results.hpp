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

// Returns a result with isError and the text "Error: " + sentence. The sentence should help the
// model that called the tool.
std::string error_result(std::string_view sentence);

}  // namespace tool_kit
