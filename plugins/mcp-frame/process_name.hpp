// The name of the process that a message comes from, as it travels in frames.
#pragma once

#include <string>
#include <string_view>

namespace mcp_frame {

// Fit for a frame and for a log: control characters, spaces and what is not UTF-8 become '_'; at
// most max_name bytes, cut on a character boundary. Empty stays empty.
std::string clean_process_name(std::string_view name);

}  // namespace mcp_frame
