#include "profile/parse.hpp"

#include <limits>

namespace bulkhead::profiles {

bool is_json(const ProfileLayer &layer) {
  if (layer.file.ends_with(".json") || layer.file.ends_with(".jsonc")) return true;
  if (layer.file.ends_with(".toml")) return false;
  std::string_view text = layer.text;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (text[first] == '{' || text[first] == '/');
}

bool parse_layer(const ProfileLayer &layer, std::uint16_t index, const ParseOptions &options,
                 Node *out, Diagnostics &diagnostics) {
  const bool json = is_json(layer);
  if (layer.text.size() > options.max_bytes) {
    diagnostics.error({index, 0, 0}, "",
                      "larger than " + std::to_string(options.max_bytes) + " bytes", "too_large");
    return false;
  }
  if (layer.text.find('\0') != std::string::npos) {
    diagnostics.error({index, 0, 0}, "", "the file contains a NUL byte",
                      json ? "invalid_json" : "invalid_toml");
    return false;
  }
  if (!(json ? parse_json : parse_toml)(layer, index, options, out, diagnostics)) return false;
  if (out->kind == Kind::table) return true;
  diagnostics.error(out->place, "", "the top level must be an object { }", kInvalidSchema);
  return false;
}

}  // namespace bulkhead::profiles
