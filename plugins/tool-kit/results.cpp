#include "tool-kit/results.hpp"

#include <bulkhead/cpp/json_writer.hpp>

namespace tool_kit {
namespace {

std::string result(std::string_view text, std::string_view more) {
  std::string out = R"({"content":[{"type":"text","text":)";
  out.reserve(text.size() + text.size() / 16 + more.size() + 80);
  bh::json::append_quoted(&out, text);
  out += "}]";
  out += more;
  out += '}';
  return out;
}

}  // namespace

std::string text_result(std::string_view text, std::string_view structured) {
  if (structured.empty()) return result(text, {});
  return result(text, ",\"structuredContent\":" + std::string(structured));
}

std::string error_result(std::string_view sentence) {
  return result("Error: " + std::string(sentence), ",\"isError\":true");
}

}  // namespace tool_kit
