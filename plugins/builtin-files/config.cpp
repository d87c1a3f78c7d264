#include "builtin-files/config.hpp"

#include <rapidjson/document.h>

#include <algorithm>

#include "bulkhead/cpp/text.hpp"

namespace builtin_files {
namespace {

using Value = rapidjson::Value;

constexpr std::size_t max_workspaces = 32;
constexpr std::uint64_t most_bytes = 1ull << 50;

bh_status invalid(std::string_view what, bh_error *error) {
  return bh::fail(error, BH_E_INVALID, what);
}

bool read_text(const Value &object, const char *name, std::string *out) {
  const auto it = object.FindMember(name);
  if (it == object.MemberEnd() || !it->value.IsString()) return false;
  out->assign(it->value.GetString(), it->value.GetStringLength());
  return !out->empty() && out->find('\0') == std::string::npos;
}

// Each function reads an optional member into *out. If the member is absent, *out is unchanged.
// Returns false if the value is invalid.
bool read_flag(const Value &object, const char *name, bool *out) {
  const auto it = object.FindMember(name);
  if (it == object.MemberEnd()) return true;
  if (!it->value.IsBool()) return false;
  *out = it->value.GetBool();
  return true;
}

bool read_whole(const Value &object, const char *name, std::uint64_t min, std::uint64_t max,
                std::uint64_t *out) {
  const auto it = object.FindMember(name);
  if (it == object.MemberEnd()) return true;
  if (!it->value.IsUint64()) return false;
  *out = it->value.GetUint64();
  return *out >= min && *out <= max;
}

bool is_name(std::string_view name) {
  return name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
           return bh::is_letter_or_digit(c) || c == '_' || c == '-';
         });
}

bh_status read_rights(const Value &value, WorkspaceConfig *w, bh_error *error) {
  const std::string which = "the workspace \"" + w->name + "\": ";
  if (!read_flag(value, "write", &w->write)) {
    return invalid(which + "\"write\" must be true or false", error);
  }
  if (!read_whole(value, "write_bytes", 0, most_bytes, &w->write_bytes)) {
    return invalid(which + "\"write_bytes\" must be a whole number up to 2^50", error);
  }
  return BH_OK;
}

bh_status read_workspace(const Value &value, std::vector<WorkspaceConfig> *out, bh_error *error) {
  WorkspaceConfig w;
  if (!value.IsObject() || !read_text(value, "name", &w.name) || !is_name(w.name)) {
    return invalid("each workspace requires a name of letters, digits, \"_\" and \"-\"", error);
  }
  if (!read_text(value, "path", &w.path)) {
    return invalid("the workspace \"" + w.name + "\" requires a path", error);
  }
  if (const bh_status status = read_rights(value, &w, error); status != BH_OK) return status;
  for (const WorkspaceConfig &other : *out) {
    if (other.name == w.name) {
      return invalid("two workspaces have the name \"" + w.name + "\"", error);
    }
  }
  out->push_back(std::move(w));
  return BH_OK;
}

bh_status read_single_workspace(const Value &document, Config *out, bh_error *error) {
  WorkspaceConfig w{"work", "."};
  if (document.HasMember("path") && !read_text(document, "path", &w.path)) {
    return invalid("\"path\" must be the path of a folder", error);
  }
  if (const bh_status status = read_rights(document, &w, error); status != BH_OK) return status;
  out->workspaces.push_back(std::move(w));
  return BH_OK;
}

bh_status read_workspaces(const Value &document, Config *out, bh_error *error) {
  const auto list = document.FindMember("workspaces");
  if (list == document.MemberEnd()) return read_single_workspace(document, out, error);
  for (const char *name : {"path", "write", "write_bytes"}) {
    if (!document.HasMember(name)) continue;
    return invalid("set either \"path\" or \"workspaces\" (with \"write\" in each workspace)",
                   error);
  }
  if (!list->value.IsArray() || list->value.Empty() || list->value.Size() > max_workspaces) {
    return invalid("\"workspaces\" must be an array of 1 to 32 folders", error);
  }
  for (const Value &value : list->value.GetArray()) {
    const bh_status status = read_workspace(value, &out->workspaces, error);
    if (status != BH_OK) return status;
  }
  return BH_OK;
}

bh_status read_snapshots(const Value &document, Config *out, bh_error *error) {
  const auto it = document.FindMember("snapshots");
  if (it == document.MemberEnd()) return BH_OK;
  SnapshotConfig s;
  if (!it->value.IsObject() || !read_text(it->value, "path", &s.path)) {
    return invalid("\"snapshots\" requires a \"path\": the folder for snapshots", error);
  }
  const bool good = read_whole(it->value, "interval_s", 0, 86'400, &s.interval_s) &&
                    read_flag(it->value, "before_changes", &s.before_changes) &&
                    read_whole(it->value, "max_bytes", 1u << 20, most_bytes, &s.max_bytes) &&
                    read_whole(it->value, "max_file_bytes", 1024, most_bytes, &s.max_file_bytes);
  if (!good) {
    return invalid(
        "\"snapshots\": interval_s must be 0 to 86400, before_changes must be true or false, "
        "max_bytes must be at least 1048576, and max_file_bytes must be at least 1024",
        error);
  }
  out->snapshots = std::move(s);
  return BH_OK;
}

}  // namespace

bh_status parse_config(std::string_view json, Config *out, bh_error *error) {
  *out = {};
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag>(
      json.empty() ? "{}" : json.data(), json.empty() ? 2 : json.size());
  if (document.HasParseError() || !document.IsObject()) {
    return invalid("the configuration is not a JSON object", error);
  }
  if (const bh_status status = read_workspaces(document, out, error); status != BH_OK) {
    return status;
  }
  bool resolved = false;
  if (!read_flag(document, "resolved", &resolved)) {
    return invalid("\"resolved\" must be true or false", error);
  }
  if (resolved) out->links = Links::refuse;
  return read_snapshots(document, out, error);
}

}  // namespace builtin_files
