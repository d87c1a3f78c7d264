#include "builtin-http/paging.hpp"

#include <bulkhead/cpp/text.hpp>

#include <algorithm>

#include "tool-kit/results.hpp"

namespace builtin_http {

std::string Part::shown() const {
  return "Showing: " + std::to_string(begin) + ".." + std::to_string(end) + "\n";
}

Paging read_paging(tool_kit::Arguments *arguments) {
  Paging paging;
  paging.start_index = arguments->whole("start_index", 0, 0, 1u << 30);
  paging.max_length = arguments->whole("max_length", paging.max_length, 1, 1'000'000);
  return paging;
}

std::string paging_schema(std::string_view what) {
  return R"("start_index":{"type":"integer","minimum":0,"default":0,"description":"Byte offset in the )" +
         std::string(what) +
         R"("},"max_length":{"type":"integer","minimum":1,"maximum":1000000,)"
         R"("default":5000,"description":"Maximum number of bytes of the )" +
         std::string(what) + R"("})";
}

bool part_of(std::string_view text, const Paging &paging, Part *out, std::string *problem) {
  out->total = text.size();
  if (paging.start_index > 0 && paging.start_index >= text.size()) {
    *problem = "start_index " + std::to_string(paging.start_index) +
               " is beyond the end; the text has " + std::to_string(text.size()) + " bytes";
    return false;
  }
  out->begin = bh::character_boundary(text, paging.start_index);
  const std::size_t length = std::min<std::uint64_t>(paging.max_length, text.size() - out->begin);
  out->end = bh::character_boundary(text, out->begin + length);
  // A part has at least one character, even if the character is longer than max_length. Otherwise,
  // the caller would make no progress.
  for (std::size_t n = length; out->end <= out->begin && out->end < text.size(); ++n) {
    out->end = bh::character_boundary(text, out->begin + n);
  }
  return true;
}

}  // namespace builtin_http
