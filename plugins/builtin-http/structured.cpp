#include "builtin-http/structured.hpp"

#include <bulkhead/cpp/json_writer.hpp>

#include "builtin-http/head_text.hpp"

namespace builtin_http {

std::string output_schema(std::string_view required, std::string_view properties) {
  std::string out = R"({"type":"object","required":[)";
  return out.append(required).append(R"(],"properties":{)").append(properties).append("}}");
}

const std::string_view head_properties =
    R"("url":{"type":"string","description":"Final URL after redirects"},)"
    R"("status":{"type":"integer"},"headers":{"type":"array","items":{"type":"object",)"
    R"("required":["name","value"],"properties":{"name":{"type":"string"},)"
    R"("value":{"type":"string"}}}})";

std::string head_members(const Response &response) {
  std::string out = "\"url\":" + bh::json::quoted(response.url.text()) +
                    ",\"status\":" + std::to_string(response.status) + ",\"headers\":[";
  for (const Header &h : response.headers) {
    if (!out.ends_with('[')) out += ',';
    out += "{\"name\":" + bh::json::quoted(h.name) +
           ",\"value\":" + bh::json::quoted(shown_value(h)) + "}";
  }
  return out + "]";
}

std::string part_properties(std::string_view name) {
  return R"("content_length":{"type":"integer","description":"Size of the whole text in bytes"},)"
         R"("start_index":{"type":"integer"},"next_start_index":{"type":"integer",)"
         R"("description":"Absent at the end"},")" +
         std::string(name) + R"(":{"type":"string"})";
}

std::string part_members(std::string_view name, std::string_view text, const Part &part) {
  std::string out = "\"content_length\":" + std::to_string(part.total) +
                    ",\"start_index\":" + std::to_string(part.begin);
  if (!part.is_last()) out += ",\"next_start_index\":" + std::to_string(part.end);
  out.append(",\"").append(name).append("\":");
  return out + bh::json::quoted(text.substr(part.begin, part.end - part.begin));
}

}  // namespace builtin_http
