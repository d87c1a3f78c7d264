// Writes the `result` of a tools/call request as JSON.
//
// Thread-safe. Throws only std::bad_alloc.
#pragma once

#include <string>
#include <string_view>

namespace tool_kit {

// Returns {"content":[{"type":"text","text":...}]}. `structured` is the JSON text of
// structuredContent, or empty.
std::string text_result(std::string_view text, std::string_view structured = {});

// Like text_result(), but sets isError and writes "Error: " before the sentence, which is intended
// for the model.
std::string error_result(std::string_view sentence);

}  // namespace tool_kit
