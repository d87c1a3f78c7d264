#include "telemetry-sqlite/config.hpp"

#include <rapidjson/document.h>

namespace telemetry_sqlite {

bh_status parse_config(std::string_view json, Config *out, bh_error *error) {
  const auto invalid = [&](std::string_view what) { return bh::fail(error, BH_E_INVALID, what); };
  rapidjson::Document root;
  const std::string_view text = json.empty() ? std::string_view("{}") : json;
  root.Parse<rapidjson::kParseIterativeFlag>(text.data(), text.size());
  if (root.HasParseError() || !root.IsObject()) {
    return invalid("the configuration is not a JSON object");
  }
  const auto number = [&](const char *name, std::uint64_t *value) {
    const auto it = root.FindMember(name);
    if (it != root.MemberEnd() && it->value.IsUint64()) *value = it->value.GetUint64();
  };
  const auto is = [&](const char *name, const char *value) {
    const auto it = root.FindMember(name);
    return it != root.MemberEnd() && it->value == value;
  };
  out->full = is("mode", "full");
  if (out->full && is("on_failure", "spill")) {
    return invalid(
        "mode \"full\" rejects calls whose records cannot be stored, so on_failure cannot be "
        "\"spill\"; "
        "remove on_failure");
  }
  out->block = out->full || is("on_failure", "block");
  const auto flag = [&](const char *name, bool *value) {
    const auto it = root.FindMember(name);
    if (it != root.MemberEnd() && it->value.IsBool()) *value = it->value.GetBool();
  };
  flag("texts", &out->texts);
  flag("rejected_arguments", &out->rejected_arguments);
  if (out->rejected_arguments && !out->texts) {
    return invalid(
        "rejected_arguments = true requires texts = true, because arguments are not recorded with "
        "texts = false; remove one of the two settings");
  }
  number("flush_ms", &out->flush_ms);
  number("checkpoint_rows", &out->checkpoint_rows);
  number("segment_bytes", &out->segment_bytes);
  number("max_bytes", &out->max_bytes);
  number("retention_days", &out->retention_days);
  number("spill_bytes", &out->spill_bytes);
  if (!root.HasMember("segment_bytes")) {
    out->segment_bytes = std::min(out->segment_bytes, out->max_bytes / 4);
  }
  if (out->segment_bytes > out->max_bytes / 2) {
    return invalid(
        "segment_bytes must be at most half of max_bytes, since old records are removed file by "
        "file");
  }
  return BH_OK;
}

}  // namespace telemetry_sqlite
