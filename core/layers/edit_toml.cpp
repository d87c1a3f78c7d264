#include <algorithm>
#include <vector>

#include "layers/edit_text.hpp"
#include "profile/parse.hpp"
#include "profile/toml_text.hpp"

namespace bulkhead::profiles {
namespace {

// Returns the positions of table headers: lines that begin with '[' outside strings and values.
std::vector<std::size_t> header_lines(std::string_view text) {
  std::vector<std::size_t> out;
  std::size_t line = 0, depth = 0;
  bool fresh = true;  // only white space since the start of the line
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '"' || c == '\'') {
      i = skip_toml_string(text, i);
      fresh = false;
      continue;
    }
    if (c == '#') {
      i = std::min(text.find('\n', i), text.size());
      continue;
    }
    if (c == '[' && fresh && depth == 0) out.push_back(line);
    if (c == '[' || c == '{') ++depth;
    if ((c == ']' || c == '}') && depth > 0) --depth;
    if (c == '\n') line = i + 1;
    fresh = c == '\n' || (fresh && (c == ' ' || c == '\t' || c == '\r'));
    ++i;
  }
  return out;
}

std::string_view line_at(std::string_view text, std::size_t at) {
  return text.substr(at, std::min(text.find('\n', at), text.size() - 1) + 1 - at);
}

// Returns the keys in a table header, such as {"mcpServers", "x", "env"}.
std::vector<std::string> keys_of(std::string_view header) {
  const std::vector<ProfileLayer> layers{{"file", "header.toml", std::string(header)}};
  Diagnostics diagnostics(layers);
  Node root;
  std::vector<std::string> out;
  if (!parse_toml(layers.front(), 0, {}, &root, diagnostics)) return out;
  for (const Node *at = &root; at->kind == Kind::table && at->members.size() == 1;
       at = &at->members.front().value) {
    out.push_back(at->members.front().name);
  }
  return out;
}

bool is_blank_or_comment(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \t\r\n");
  return first == std::string_view::npos || line[first] == '#';
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

// Returns the start of the line that precedes the line starting at `at`.
std::size_t line_before(std::string_view text, std::size_t at) {
  return at < 2 ? 0 : text.rfind('\n', at - 2) + 1;
}

// Returns the end of a table. Comments and blank lines directly before the next table belong to
// that table.
std::size_t end_of_table(std::string_view text, std::size_t from, std::size_t next) {
  while (next > from) {
    const std::size_t before = line_before(text, next);
    if (before <= from || !is_blank_or_comment(line_at(text, before))) break;
    next = before;
  }
  return next;
}

struct Lines {
  std::size_t begin, end;
};

// Returns the line ranges of the server's tables. Adjacent ranges are joined.
std::vector<Lines> tables_of(std::string_view text, std::string_view section,
                             std::string_view name) {
  std::vector<std::size_t> headers = header_lines(text);
  headers.push_back(text.size());
  std::vector<Lines> out;
  for (std::size_t i = 0; i + 1 < headers.size(); ++i) {
    const std::vector<std::string> keys = keys_of(line_at(text, headers[i]));
    if (keys.size() < 2 || keys[0] != section || keys[1] != name) continue;
    const std::size_t end = end_of_table(text, headers[i], headers[i + 1]);
    if (!out.empty() && out.back().end == headers[i]) {
      out.back().end = end;
    } else {
      out.push_back({headers[i], end});
    }
  }
  return out;
}

}  // namespace

std::string add_to_toml(std::string_view text, const Node &root, const NewServer &server) {
  const Member *section = servers_section(root);
  const std::string table =
      (section == nullptr ? "mcpServers" : section->name) + '.' + toml_key(server.name);
  std::string out(text);
  if (!out.empty() && !out.ends_with('\n')) out += '\n';
  if (!out.empty()) out += '\n';
  out += '[' + table + "]\n";
  if (!server.url.empty()) out += "url = " + toml_string(server.url) + '\n';
  if (!server.command.empty()) out += "command = " + toml_string(server.command) + '\n';
  if (!server.args.empty()) {
    std::string args;
    for (const std::string &arg : server.args)
      args += (args.empty() ? "" : ", ") + toml_string(arg);
    out += "args = [" + args + "]\n";
  }
  if (!server.cwd.empty()) out += "cwd = " + toml_string(server.cwd) + '\n';
  const auto pairs = [&](std::string_view name, const auto &list) {
    if (list.empty()) return;
    out += '[' + table + '.' + std::string(name) + "]\n";
    for (const auto &[key, value] : list) out += toml_key(key) + " = " + toml_string(value) + '\n';
  };
  pairs("env", server.env);
  pairs("headers", server.headers);
  return out;
}

std::optional<std::string> remove_from_toml(std::string_view text, const Node &root,
                                            std::string_view name) {
  std::string out;
  std::size_t kept = 0;  // the text before this position has been processed
  for (const Lines &lines : tables_of(text, servers_section(root)->name, name)) {
    // Keeps at most one blank line between the remaining parts.
    const std::size_t before = line_before(text, lines.begin);
    const bool ends_blank = lines.end == text.size() || is_blank(line_at(text, lines.end));
    const bool begins_blank =
        before >= kept && before < lines.begin && is_blank(line_at(text, before));
    const std::size_t begin = ends_blank && begins_blank ? before : lines.begin;
    out.append(text.substr(kept, begin - kept));
    kept = lines.end;
  }
  if (kept == 0) return std::nullopt;
  return out.append(text.substr(kept));
}

std::optional<std::string> disable_in_toml(std::string_view text, const Node &root,
                                           std::string_view name) {
  std::string out(text);
  const Member *section = servers_section(root);
  for (const std::size_t at : header_lines(text)) {
    const std::string_view line = line_at(text, at);
    if (keys_of(line) != std::vector<std::string>{section->name, std::string(name)}) continue;
    return out.insert(at + line.size(),
                      line.ends_with('\n') ? "disabled = true\n" : "\ndisabled = true\n");
  }
  const Node &server = *section->value.find(name);
  const std::size_t table = toml_offset(text, server.place);  // NAME = { ... }
  if (table >= text.size() || text[table] != '{') return std::nullopt;
  return out.insert(table + 1, server.members.empty() ? " disabled = true " : " disabled = true,");
}

}  // namespace bulkhead::profiles
