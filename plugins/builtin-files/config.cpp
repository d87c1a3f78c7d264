#include "builtin-files/config.hpp"

#include <rapidjson/document.h>

#include <algorithm>

namespace builtin_files {
namespace {

using Value = rapidjson::Value;

constexpr std::size_t max_workspaces = 32;

bh_status invalid(std::string_view what, bh_error *error) {
  return bh::fail(error, BH_E_INVALID, what);
}

bool read_text(const Value &object, const char *name, std::string *out) {
  const auto it = object.FindMember(name);
  if (it == object.MemberEnd() || !it->value.IsString()) return false;
  out->assign(it->value.GetString(), it->value.GetStringLength());
  return !out->empty() && out->find('\0') == std::string::npos;
}

bool is_name(std::string_view name) {
  return name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  c == '_' || c == '-';
         });
}

bh_status read_workspace(const Value &value, std::vector<WorkspaceConfig> *out, bh_error *error) {
  WorkspaceConfig w;
  if (!value.IsObject() || !read_text(value, "name", &w.name) || !is_name(w.name)) {
    return invalid("each workspace needs a name of letters, digits, \"_\" and \"-\"", error);
  }
  if (!read_text(value, "path", &w.path)) {
    return invalid("the workspace \"" + w.name + "\" needs a path", error);
  }
  const auto write = value.FindMember("write");
  if (write != value.MemberEnd() && !write->value.IsFalse()) {
    return invalid("the workspace \"" + w.name + "\": this version can only read (write = false)",
                   error);
  }
  for (const WorkspaceConfig &other : *out) {
    if (other.name == w.name) {
      return invalid("two workspaces have the name \"" + w.name + "\"", error);
    }
  }
  out->push_back(std::move(w));
  return BH_OK;
}

}  // namespace

bh_status parse_config(std::string_view json, std::vector<WorkspaceConfig> *out, bh_error *error) {
  out->clear();
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag>(
      json.empty() ? "{}" : json.data(), json.empty() ? 2 : json.size());
  if (document.HasParseError() || !document.IsObject()) {
    return invalid("the configuration is not a JSON object", error);
  }
  const auto list = document.FindMember("workspaces");
  const auto path = document.FindMember("path");
  if (list != document.MemberEnd() && path != document.MemberEnd()) {
    return invalid("give either \"path\" or \"workspaces\"", error);
  }
  if (list == document.MemberEnd()) {
    WorkspaceConfig w{"work", "."};
    if (path != document.MemberEnd() && !read_text(document, "path", &w.path)) {
      return invalid("\"path\" must be the name of a folder", error);
    }
    out->push_back(std::move(w));
    return BH_OK;
  }
  if (!list->value.IsArray() || list->value.Empty() || list->value.Size() > max_workspaces) {
    return invalid("\"workspaces\" must be an array of 1 to 32 folders", error);
  }
  for (const Value &value : list->value.GetArray()) {
    if (const bh_status status = read_workspace(value, out, error); status != BH_OK) return status;
  }
  return BH_OK;
}

}  // namespace builtin_files
