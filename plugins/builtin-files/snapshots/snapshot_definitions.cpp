#include "builtin-files/definition.hpp"
#include "builtin-files/snapshots/snapshot_tools.hpp"

namespace builtin_files {
namespace {

using std::string;

constexpr std::string_view checkpoint_schema =
    R"("checkpoint":{"type":"string","pattern":"^cp-[0-9]{1,2}$",)"
    R"("description":"Snapshot name from snapshots_list, like cp-10"})";
constexpr std::string_view paging_schema =
    R"("format":{"type":"string","enum":["text","json"],"default":"text"},)"
    R"("start_index":{"type":"integer","minimum":0,"default":0,"description":"Offset in the text, in bytes"},)"
    R"("max_length":{"type":"integer","minimum":1,"default":5000,"description":"Maximum length of the text, in bytes"})";
constexpr std::string_view name_schema =
    R"("name":{"type":"string","pattern":"^[A-Za-z0-9_-]{1,64}$",)"
    R"("description":"Up to 64 letters, digits, _ and -"})";
constexpr std::string_view ops_schema = R"("op":{"enum":["created","modified","deleted"]})";

Definition create_definition() {
  return {"snapshots_create",
          "Take a snapshot",
          "Takes a named snapshot of the whole workspace, to which files can be reverted later. "
          "There are 12 slots for named snapshots; none is overwritten.",
          Effect::adds,
          string(name_schema),
          "\"name\"",
          R"({"type":"object","required":["checkpoint","name","hash","available"],"properties":{)"
          R"("checkpoint":{"type":"string"},"name":{"type":"string"},"hash":{"type":"string"},)"
          R"("available":{"type":"integer"},"files_count":{"type":"integer"},)"
          R"("skipped_count":{"type":"integer"}}})"};
}

Definition delete_definition() {
  return {"snapshots_delete",
          "Delete a snapshot",
          "Deletes a snapshot created by snapshots_create or snapshots_compact. Automatic "
          "snapshots cannot be deleted.",
          Effect::settles,
          string(checkpoint_schema),
          "\"checkpoint\"",
          R"({"type":"object","required":["deleted","checkpoint"],"properties":{)"
          R"("deleted":{"type":"boolean"},"checkpoint":{"type":"string"}}})"};
}

Definition list_definition() {
  return {"snapshots_list",
          "List snapshots",
          "Lists all snapshots, newest first, each with the changes since the previous one.",
          Effect::reads,
          string(paging_schema) + R"(,"include_changes":{"type":"boolean","default":false})",
          "",
          R"({"type":"object","required":["snapshots","auto_max","manual_max","manual_available"],)"
          R"("properties":{"snapshots":{"type":"array","items":{"type":"object",)"
          R"("required":["checkpoint","slot","origin","files_count","changes_summary"]}},)"
          R"("auto_max":{"type":"integer"},"manual_max":{"type":"integer"},)"
          R"("manual_available":{"type":"integer"}}})"};
}

Definition compact_definition() {
  return {
      "snapshots_compact",
      "Merge snapshots",
      "Merges several snapshots into one with the newest content of each file, and deletes them.",
      Effect::changes,
      R"("checkpoints":{"type":"array","minItems":2,"maxItems":22,"items":{"type":"string"},)"
      R"("description":"At least two snapshot names from snapshots_list"},)" +
          string(name_schema),
      "\"checkpoints\"",
      R"({"type":"object","required":["compacted","checkpoint","merged_count"],"properties":{)"
      R"("compacted":{"type":"boolean"},"checkpoint":{"type":"string"},)"
      R"("merged_count":{"type":"integer"},"deleted_checkpoints":{"type":"array",)"
      R"("items":{"type":"string"}},"files_count":{"type":"integer"}}})"};
}

Definition changes_definition() {
  return {"snapshots_changes",
          "Show changes",
          "Lists files that differ from the snapshots, newest snapshot first, each path "
          "once. Contents are compared, not only sizes.",
          Effect::reads,
          string(paging_schema),
          "",
          R"({"type":"object","required":["changes","complete"],"properties":{"changes":{)"
          R"("type":"array","items":{"type":"object","required":["path","op","size","checkpoint"],)"
          R"("properties":{"path":{"type":"string"},)" +
              string(ops_schema) +
              R"(,"size":{"type":"integer"},"is_symlink":{"type":"boolean"},)"
              R"("checkpoint":{"type":"string"}}}},"complete":{"type":"boolean"}}})"};
}

Definition history_definition() {
  return {"snapshots_history",
          "Show the versions of a file",
          "Lists the versions of one file in the snapshots, newest first.",
          Effect::reads,
          R"("path":{"type":"string","description":"Path relative to the workspace"})",
          "\"path\"",
          R"({"type":"object","required":["path","versions"],"properties":{)"
          R"("path":{"type":"string"},"current_size":{"type":["integer","null"]},)"
          R"("versions":{"type":"array","items":{"type":"object","properties":{)"
          R"("status":{"enum":["new","modified","unchanged","deleted"]}}}}}})"};
}

Definition revert_definition() {
  return {"snapshots_revert",
          "Revert to a snapshot",
          "Restores the contents and permissions of a file or folder from a snapshot. If "
          "checkpoint is given, files that are newer than that snapshot are deleted.",
          Effect::settles,
          R"("path":{"type":"string",)"
          R"("description":"Path relative to the workspace; \".\" is the whole workspace"},)"
          R"("checkpoint":{"type":"string","pattern":"^cp-[0-9]{1,2}$",)"
          R"("description":"Snapshot name; default: the newest snapshot that contains the path"})",
          "\"path\"",
          R"({"type":"object","required":["reverted","path","action","checkpoint"],"properties":{)"
          R"("reverted":{"type":"boolean"},"path":{"type":"string"},)"
          R"("action":{"enum":["restored","deleted"]},"checkpoint":{"type":"string"},)"
          R"("restored":{"type":"integer"},"deleted":{"type":"integer"},)"
          R"("unchanged":{"type":"integer"}}})"};
}

}  // namespace

string snapshot_definitions(const std::vector<Workspace> &workspaces) {
  std::vector<std::string_view> all;
  std::vector<std::string_view> writable;
  for (const Workspace &w : workspaces) {
    all.emplace_back(w.name());
    if (w.writable()) writable.emplace_back(w.name());
  }
  string out;
  for (const auto make : {create_definition, delete_definition, list_definition, compact_definition,
                          changes_definition, history_definition}) {
    out += (out.empty() ? "" : ",") + definition_json(make(), all);
  }
  if (!writable.empty()) out += "," + definition_json(revert_definition(), writable);
  return out;
}

}  // namespace builtin_files
