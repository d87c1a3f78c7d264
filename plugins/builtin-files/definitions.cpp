#include "builtin-files/definition.hpp"
#include "builtin-files/tools.hpp"

namespace builtin_files {
namespace {

using std::string;

constexpr std::string_view path_schema =
    R"("path":{"type":"string","description":"Path relative to the workspace, like src/main.c"})";
constexpr std::string_view folder_schema =
    R"("path":{"type":"string","default":".","description":"Folder, relative to the workspace"})";
constexpr std::string_view gitignore_schema =
    R"(,"gitignore":{"type":"boolean","default":false,)"
    R"("description":"Skip entries that match .gitignore files"})";

constexpr std::string_view entry_schema =
    R"("type":{"type":"string","enum":["file","directory","symlink","other"]},)"
    R"("size":{"type":"integer","description":"Bytes"},"modified":{"type":"string"})";

Definition file_read_definition() {
  return {"file_read",
          "Read a file",
          "Returns lines of a text file unchanged. Up to 1 MiB per call; if more of the file "
          "remains, the result contains the next offset.",
          Effect::reads,
          string(path_schema) +
              R"(,"offset":{"type":"integer","minimum":1,"default":1,)"
              R"("description":"First line, counted from 1"},)"
              R"("limit":{"type":"integer","minimum":1,"maximum":100000,"default":2000,)"
              R"("description":"Maximum number of lines"},)"
              R"("line_numbers":{"type":"boolean","default":false,)"
              R"("description":"Prefix each line with its number and a tab"},)"
              R"("encoding":{"type":"string","enum":["text","base64"],"default":"text",)"
              R"("description":"base64 for files that are not text, up to 1 MiB"})",
          "\"path\"",
          R"({"type":"object","required":["path","size"],"properties":{"path":{"type":"string"},)"
          R"("size":{"type":"integer","description":"Size of the file in bytes"},)"
          R"("text":{"type":"string","description":"Absent when the content is base64"},)"
          R"("first_line":{"type":"integer"},)"
          R"("next_offset":{"type":"integer","description":"Absent at the end of the file"}}})"};
}

Definition dir_list_definition() {
  return {"dir_list",
          "List a folder",
          "Lists the entries of a folder: name, type, size and modification time. Up to 2000 "
          "entries, sorted by name.",
          Effect::reads,
          string(folder_schema),
          "",
          R"({"type":"object","required":["path","entries","more"],"properties":{)"
          R"("path":{"type":"string"},"entries":{"type":"array","items":{"type":"object",)"
          R"("required":["name","type"],"properties":{"name":{"type":"string"},)" +
              string(entry_schema) +
              R"(}}},"more":{"type":"integer","description":"Entries that are not shown"}}})"};
}

Definition dir_tree_definition() {
  return {"dir_tree",
          "Show a folder tree",
          "Shows a folder with its subfolders and files, down to a given depth. Symbolic links and "
          "the contents of .git are skipped.",
          Effect::reads,
          string(folder_schema) +
              R"(,"depth":{"type":"integer","minimum":1,"maximum":32,"default":3},)"
              R"("limit":{"type":"integer","minimum":1,"maximum":2000,"default":500,)"
              R"("description":"Maximum number of entries"})" +
              string(gitignore_schema),
          "",
          R"({"type":"object","required":["path","entries","complete"],"properties":{)"
          R"("path":{"type":"string"},"entries":{"type":"array","items":{"type":"object",)"
          R"("required":["path","type"],"properties":{"path":{"type":"string"},)" +
              string(entry_schema) +
              R"(}}},"complete":{"type":"boolean"},"reason":{"type":"string"}}})"};
}

Definition file_info_definition() {
  return {"file_info",
          "Describe a file",
          "Returns type, size, times and permissions of one file, folder or symbolic link.",
          Effect::reads,
          string(path_schema),
          "\"path\"",
          R"({"type":"object","required":["path","type","size","modified","mode"],"properties":{)"
          R"("path":{"type":"string"},)" +
              string(entry_schema) + R"(,"mode":{"type":"string"},"target":{"type":"string"}}})"};
}

Definition file_search_definition() {
  return {"file_search",
          "Search files",
          "Finds files by name, lines by content, or both, in a folder and its subfolders. "
          "Symbolic links and .git are not searched; content is searched in text files up to 4 "
          "MiB.",
          Effect::reads,
          string(folder_schema) +
              R"(,"glob":{"type":"string",)"
              R"("description":"File name pattern such as *.py or, with folders, src/**/*.h"},)"
              R"("content":{"type":"string","maxLength":4096,)"
              R"("description":"Text that a line must contain"},)"
              R"("regex":{"type":"boolean","default":false,)"
              R"("description":"content is an RE2 regular expression"},)"
              R"("ignore_case":{"type":"boolean","default":false},)"
              R"("max_matches":{"type":"integer","minimum":1,"maximum":1000,"default":100})" +
              string(gitignore_schema),
          "",
          R"({"type":"object","required":["matches","complete"],"properties":{"matches":{)"
          R"("type":"array","items":{"type":"object","required":["path"],"properties":{)"
          R"("path":{"type":"string"},"line":{"type":"integer"},"text":{"type":"string"}}}},)"
          R"("complete":{"type":"boolean"},"reason":{"type":"string",)"
          R"("description":"Why the search stopped early"}}})"};
}

Definition file_write_definition() {
  return {"file_write",
          "Write a file",
          "Writes a whole file atomically: readers see either the old or the new content. Missing "
          "folders are created. To change part of a file, use file_edit.",
          Effect::settles,
          string(path_schema) +
              R"(,"content":{"type":"string","description":"New content of the file"},)"
              R"("encoding":{"type":"string","enum":["text","base64"],"default":"text",)"
              R"("description":"Encoding of content"},)"
              R"("create_only":{"type":"boolean","default":false,)"
              R"("description":"Fail if the file already exists"},)"
              R"("parents":{"type":"boolean","default":true,)"
              R"("description":"Create missing folders"})",
          R"("path","content")",
          R"({"type":"object","required":["path","bytes","created"],"properties":{)"
          R"("path":{"type":"string"},"bytes":{"type":"integer"},"created":{"type":"boolean"}}})"};
}

Definition file_edit_definition() {
  return {"file_edit",
          "Edit a file",
          "Replaces text in a file; old_text must match exactly and occur once unless all is set. "
          "Returns the diff; dry_run returns the diff without writing.",
          Effect::changes,
          string(path_schema) +
              R"(,"old_text":{"type":"string","minLength":1,)"
              R"("description":"The exact text, including whitespace and line endings"},)"
              R"("new_text":{"type":"string"},)"
              R"("all":{"type":"boolean","default":false,)"
              R"("description":"Replace all occurrences"},)"
              R"("dry_run":{"type":"boolean","default":false})",
          R"("path","old_text","new_text")",
          R"({"type":"object","required":["path","replacements","dry_run","diff"],"properties":{)"
          R"("path":{"type":"string"},"replacements":{"type":"integer"},)"
          R"("dry_run":{"type":"boolean"},)"
          R"("diff":{"type":"string","description":"Unified diff, up to 64 KiB"}}})"};
}

Definition file_move_definition() {
  return {"file_move",
          "Move or rename a file",
          "Moves a file or folder within its workspace atomically. An existing target is replaced "
          "only if overwrite is set.",
          Effect::changes,
          R"("from":{"type":"string","description":"Path relative to the workspace"},)"
          R"("to":{"type":"string","description":"New path"},)"
          R"("overwrite":{"type":"boolean","default":false})",
          R"("from","to")",
          R"({"type":"object","required":["from","to"],"properties":{)"
          R"("from":{"type":"string"},"to":{"type":"string"}}})"};
}

Definition file_delete_definition() {
  return {"file_delete",
          "Delete a file",
          "Deletes a file, a symbolic link (not its target) or an empty folder; with recursive, a "
          "folder and its contents.",
          Effect::settles,
          string(path_schema) + R"(,"recursive":{"type":"boolean","default":false})",
          "\"path\"",
          R"({"type":"object","required":["path","deleted"],"properties":{)"
          R"("path":{"type":"string"},"deleted":{"type":"integer",)"
          R"("description":"Files and folders"}}})"};
}

}  // namespace

string definitions(const std::vector<Workspace> &workspaces) {
  std::vector<std::string_view> all;
  std::vector<std::string_view> writable;
  for (const Workspace &w : workspaces) {
    all.emplace_back(w.name());
    if (w.writable()) writable.emplace_back(w.name());
  }
  string out = "[";
  const auto add = [&](const Definition &d, const std::vector<std::string_view> &names) {
    if (!names.empty()) out += (out.size() > 1 ? "," : "") + definition_json(d, names);
  };
  for (const auto make : {file_read_definition, dir_list_definition, dir_tree_definition,
                          file_info_definition, file_search_definition}) {
    add(make(), all);
  }
  for (const auto make : {file_write_definition, file_edit_definition, file_move_definition,
                          file_delete_definition}) {
    add(make(), writable);
  }
  return out + "]";
}

}  // namespace builtin_files
