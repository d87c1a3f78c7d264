#include "common/json_text.hpp"

#include "mcp/scan.hpp"

namespace bulkhead::program {

void add_json(std::string *object, std::string_view name, std::string_view json) {
  if (!object->ends_with('{')) *object += ',';
  mcp::append_quoted(object, name);
  object->append(":").append(json);
}

void add_text(std::string *object, std::string_view name, std::string_view text) {
  add_json(object, name, {});
  mcp::append_quoted(object, text);
}

void add_number(std::string *object, std::string_view name, std::uint64_t value) {
  add_json(object, name, std::to_string(value));
}

std::string text_member(std::string_view object, std::string_view key) {
  const std::string_view value = mcp::member(object, key);
  if (value.empty() || value.front() != '"') return "";
  std::string scratch;
  return std::string(mcp::unquote(value, &scratch));
}

}  // namespace bulkhead::program
