// Writes the `result` of a tools/call as JSON text.
//
// Thread: any. Exceptions: std::bad_alloc only.
#pragma once

#include <string>
#include <string_view>

namespace tool_kit {

// {"content":[{"type":"text","text":...}]}; structured: the JSON text of structuredContent, or
// empty.
std::string text_result(std::string_view text, std::string_view structured = {});

// Like text_result, with isError and "Error: " before the sentence, which the model reads.
std::string error_result(std::string_view sentence);

}  // namespace tool_kit
