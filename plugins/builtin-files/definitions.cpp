#include "builtin-files/tools.hpp"
#include "tool-kit/results.hpp"

namespace builtin_files {
namespace {

constexpr std::string_view annotations =
    R"("annotations":{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,)"
    R"("openWorldHint":false})";

constexpr std::string_view path_schema =
    R"("path":{"type":"string","description":"Path relative to the workspace, like src/main.c"})";
constexpr std::string_view folder_schema =
    R"("path":{"type":"string","default":".","description":"Folder, relative to the workspace"})";

constexpr std::string_view read_properties =
    R"(,"offset":{"type":"integer","minimum":1,"default":1,"description":"First line, counted from 1"},)"
    R"("limit":{"type":"integer","minimum":1,"maximum":100000,"default":2000,)"
    R"("description":"How many lines at most"},)"
    R"("encoding":{"type":"string","enum":["text","base64"],"default":"text",)"
    R"("description":"base64 for files that are not text, up to 1 MiB"})";

constexpr std::string_view search_properties =
    R"(,"glob":{"type":"string","description":"Names to look at: *.py, or with folders src/**/*.h"},)"
    R"("content":{"type":"string","maxLength":4096,"description":"Text that a line must contain, taken literally"
},)"
    R"("ignore_case":{"type":"boolean","default":false},)"
    R"("max_matches":{"type":"integer","minimum":1,"maximum":1000,"default":100})";

constexpr std::string_view entry_schema =
    R"("type":{"type":"string","enum":["file","directory","symlink","other"]},)"
    R"("size":{"type":"integer","description":"Bytes"},"modified":{"type":"string"})";

struct Definition {
  std::string_view name;
  std::string_view title;
  std::string_view description;
  std::string properties;
  std::string_view required;
  std::string output;  // the schema of structuredContent; empty: none
};

std::string json_of(const Definition &d, const std::string &workspace) {
  std::string out = "{\"name\":" + tool_kit::quoted(d.name);
  out += ",\"title\":" + tool_kit::quoted(d.title);
  out += ",\"description\":" + tool_kit::quoted(d.description);
  out += R"(,"inputSchema":{"type":"object","additionalProperties":false,"properties":{)";
  out += d.properties + workspace + "}";
  if (!d.required.empty()) out += ",\"required\":[" + std::string(d.required) + "]";
  out += "},";
  if (!d.output.empty()) out += "\"outputSchema\":" + d.output + ",";
  return out + std::string(annotations) + "}";
}

std::string workspace_property(const std::vector<Workspace> &workspaces) {
  std::string names;
  for (const Workspace &w : workspaces) {
    names += (names.empty() ? "" : ",") + tool_kit::quoted(w.name());
  }
  return ",\"workspace\":{\"type\":\"string\",\"enum\":[" + names +
         "],\"default\":" + tool_kit::quoted(workspaces.front().name()) +
         ",\"description\":\"The folder that paths are relative to\"}";
}

}  // namespace

std::string definitions(const std::vector<Workspace> &workspaces) {
  const std::string entry(entry_schema);
  const Definition list[] = {
      {"file_read", "Read a file",
       "Returns lines of a text file as they are. Up to 1 MiB per call; when the file goes on, the "
       "answer says the next offset.",
       std::string(path_schema) + std::string(read_properties), "\"path\"", ""},
      {"dir_list", "List a folder",
       "Lists what is directly in a folder: name, type, size, time of the last change. Up to 2000 "
       "entries, sorted by name.",
       std::string(folder_schema), "",
       R"({"type":"object","required":["path","entries","more"],"properties":{)"
       R"("path":{"type":"string"},"entries":{"type":"array","items":{"type":"object",)"
       R"("required":["name","type"],"properties":{"name":{"type":"string"},)" +
           entry + R"(}}},"more":{"type":"integer","description":"Entries that are not shown"}}})"},
      {"file_info", "Describe a file",
       "Type, size, times and permissions of one file, folder or symbolic link.",
       std::string(path_schema), "\"path\"",
       R"({"type":"object","required":["path","type","size","modified","mode"],"properties":{)"
       R"("path":{"type":"string"},)" +
           entry + R"(,"mode":{"type":"string"},"target":{"type":"string"}}})"},
      {"file_search", "Search files",
       "Finds files by name, or lines by content, or both, below a folder. Symbolic links and .git "
       "are not entered; content is looked for in text files up to 4 MiB.",
       std::string(folder_schema) + std::string(search_properties), "",
       R"({"type":"object","required":["matches","complete"],"properties":{"matches":{)"
       R"("type":"array","items":{"type":"object","required":["path"],"properties":{)"
       R"("path":{"type":"string"},"line":{"type":"integer"},"text":{"type":"string"}}}},)"
       R"("complete":{"type":"boolean"},"reason":{"type":"string",)"
       R"("description":"Why the search ended early"}}})"}};
  const std::string workspace = workspace_property(workspaces);
  std::string out = "[";
  for (const Definition &d : list) out += (out.size() > 1 ? "," : "") + json_of(d, workspace);
  return out + "]";
}

}  // namespace builtin_files
