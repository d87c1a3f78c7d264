#include "formats/clients.hpp"

#include <algorithm>
#include <filesystem>

#include "formats/import.hpp"
#include "profile/parse.hpp"
#include "profile/read_file.hpp"
#include "profile/secrets.hpp"
#include "profile/server.hpp"

namespace bulkhead {

namespace profiles {

namespace {

// The limit is high because Claude Code stores its history in the same file.
constexpr std::size_t kClientBytes = 64u << 20;
constexpr std::size_t kClientValues = 1'000'000;
constexpr std::size_t kOtherProjects = 200;  // maximum number of other projects that are listed
// Maximum number of files that are read from one folder.
constexpr std::size_t kContinueFiles = 100;

using Section = std::vector<std::string>;

struct Candidate {
  const char *client;
  std::string file;
  std::vector<Section> sections;
  bool has_projects = false;  // the file also has sections of the form projects.FOLDER.mcpServers
  std::string folder = {};    // of a project's file
};

// Adds the JSON and YAML files in this folder, because Continue reads all of them. YAML files are
// reported as unsupported.
void add_continue(const std::string &folder, std::vector<Candidate> *out) {
  std::vector<std::string> files;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    const std::string extension = at->path().extension();
    if (extension == ".json" || extension == ".yaml" || extension == ".yml")
      files.push_back(at->path());
    if (files.size() == kContinueFiles) break;
  }
  std::sort(files.begin(), files.end());
  for (std::string &file : files) out->push_back({"Continue", std::move(file), {{"mcpServers"}}});
}

// Returns true if Continue's main file has servers. The file is YAML, which is not supported, so it
// is reported only in this case.
bool mentions_servers(const std::string &file) {
  const auto text = read_whole(file, kClientBytes, true);
  return text.has_value() &&
         (text->starts_with("mcpServers:") || text->find("\nmcpServers:") != std::string::npos);
}

std::vector<Candidate> candidates(const std::string &home, const std::string &cwd, bool folder) {
  const Section plain{"mcpServers"};
  const std::vector<Section> code{{"servers"}, {"mcp", "servers"}, {"mcp.servers"}};
  const std::string mac = home + "/Library/Application Support";
  const std::string cline =
      "/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json";
  std::vector<Candidate> out = {
      {"Claude Code", home + "/.claude.json", {plain, {"projects", cwd, "mcpServers"}}, true},
      {"Claude Code", home + "/.claude/settings.json", {plain}},
      {"Claude Desktop", home + "/.config/Claude/claude_desktop_config.json", {plain}},
      {"Claude Desktop", mac + "/Claude/claude_desktop_config.json", {plain}},
      {"VS Code", home + "/.config/Code/User/mcp.json", code},
      {"VS Code", home + "/.config/Code/User/settings.json", code},
      {"VS Code", mac + "/Code/User/mcp.json", code},
      {"VS Code", mac + "/Code/User/settings.json", code},
      {"Cursor", home + "/.cursor/mcp.json", {plain}},
      {"Gemini CLI", home + "/.gemini/settings.json", {plain}},
      {"Codex", home + "/.codex/config.toml", {{"mcp_servers"}}},
      {"Windsurf", home + "/.codeium/windsurf/mcp_config.json", {plain}},
      {"Zed", home + "/.config/zed/settings.json", {{"context_servers"}}},
      {"Cline", home + "/.config" + cline, {plain}},
      {"Cline", mac + cline, {plain}},
  };
  add_continue(home + "/.continue/mcpServers", &out);
  const std::string continue_file = home + "/.continue/config.yaml";
  if (mentions_servers(continue_file)) out.push_back({"Continue", continue_file, {plain}});
  if (!folder) return out;
  const std::size_t of_user = out.size();
  const Candidate folder_files[] = {
      {"Claude Code", cwd + "/.mcp.json", {plain}},
      {"VS Code", cwd + "/.vscode/mcp.json", code},
      {"Cursor", cwd + "/.cursor/mcp.json", {plain}},
      {"Gemini CLI", cwd + "/.gemini/settings.json", {plain}},
      {"Codex", cwd + "/.codex/config.toml", {{"mcp_servers"}}},
      {"Zed", cwd + "/.zed/settings.json", {{"context_servers"}}},
  };
  out.insert(out.end(), std::begin(folder_files), std::end(folder_files));
  add_continue(cwd + "/.continue/mcpServers", &out);
  for (std::size_t i = of_user; i < out.size(); ++i) out[i].folder = cwd;
  return out;
}

std::string command_of(const Node &server);

// Returns the command line of a server in Zed's old format, {path, args, env}.
std::string command_of_zed(const Node &command) {
  Node server = command;
  for (Member &member : server.members)
    if (member.name == "path") member.name = "command";
  return command_of(server);
}

// Returns the command line as it appears in a process list, or the URL.
std::string command_of(const Node &server) {
  std::vector<std::string> words;
  std::string url;
  if (const Node *old = server.find("command"); old != nullptr && old->kind == Kind::table)
    return command_of_zed(*old);
  for (const Member &member : server.members) {
    const std::string_view key = server_key(member.name);
    const bool text = member.value.kind == Kind::string;
    if (key == "command" && text) words.insert(words.begin(), member.value.text);
    if (key == "url" && text) url = masked_url(member.value.text);
    if (key != "args") continue;
    for (const Node &item : member.value.items)
      if (item.kind == Kind::string) words.push_back(item.text);
  }
  std::string out = url;
  for (const std::string &word : masked_args(words)) out += (out.empty() ? "" : " ") + word;
  return out;
}

void add_section(const Candidate &candidate, const Section &section, const Node &root,
                 std::vector<FoundConfig> *out) {
  const Node *table = section_of(root, section);
  if (table == nullptr || table->members.empty()) return;
  FoundConfig found{candidate.client, candidate.file, section, {}, {}};
  found.folder = section.front() == "projects" ? section[1] : candidate.folder;
  for (const Member &member : table->members) {
    found.servers.push_back(member.name);
    found.commands.push_back(command_of(member.value));
  }
  out->push_back(std::move(found));
}

void search(const Candidate &candidate, const std::string &cwd, std::vector<FoundConfig> *out) {
  Node root;
  std::string error;
  if (!read_client_file(candidate.file, &root, &error)) {
    if (!error.empty()) out->push_back({candidate.client, candidate.file, {}, {}, error});
    return;
  }
  for (const Section &section : candidate.sections) add_section(candidate, section, root, out);
  const Node *projects = candidate.has_projects ? section_of(root, {"projects"}) : nullptr;
  if (projects == nullptr) return;
  std::size_t others = 0;
  for (const Member &project : projects->members) {
    if (project.name == cwd || others == kOtherProjects) continue;
    const std::size_t before = out->size();
    add_section(candidate, {"projects", project.name, "mcpServers"}, root, out);
    if (out->size() == before) continue;
    out->back().other_project = project.name;
    ++others;
  }
}

}  // namespace

bool read_client_file(const std::string &path, Node *out, std::string *error) {
  if (path.ends_with(".yaml") || path.ends_with(".yml")) {
    *error =
        "YAML is not supported: copy the servers to the \"mcpServers\" object of a .json file in "
        "the folder .continue/mcpServers";
    return false;
  }
  auto text = read_whole(path, kClientBytes, true);
  if (!text) {
    // A missing file is not an error because most users have only one or two of these clients.
    if (text.error().code != BH_E_NOT_FOUND) *error = text.error().text;
    return false;
  }
  const std::vector<ProfileLayer> layers{{"file", path, std::move(*text)}};
  Diagnostics diagnostics(layers);
  const ParseOptions options{kClientBytes, kClientValues, true};
  if (parse_layer(layers[0], 0, options, out, diagnostics)) return true;
  const auto errors = diagnostics.take_errors();
  *error = errors.empty() ? path + ": not readable" : bulkhead::to_string(errors[0]);
  return false;
}

const Node *section_of(const Node &root, const std::vector<std::string> &section) {
  const Node *node = &root;
  for (const std::string &name : section) {
    node = node->kind == Kind::table ? node->find(name) : nullptr;
    if (node == nullptr) return nullptr;
  }
  return node->kind == Kind::table ? node : nullptr;
}

}  // namespace profiles

std::vector<FoundConfig> find_client_configs(const std::string &home, const std::string &cwd,
                                             bool folder) {
  std::vector<FoundConfig> out;
  for (const profiles::Candidate &candidate : profiles::candidates(home, cwd, folder)) {
    // If `cwd` is the home directory, the user's files are found there a second time.
    bool seen = false;
    for (const FoundConfig &found : out) seen = seen || found.file == candidate.file;
    if (!seen) profiles::search(candidate, cwd, &out);
  }
  return out;
}

}  // namespace bulkhead
