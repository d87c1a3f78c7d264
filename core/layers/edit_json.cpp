#include <algorithm>

#include "layers/edit_text.hpp"

namespace bulkhead::profiles {
namespace {

constexpr std::string_view blanks = " \t\r\n";

// The parsers skip a byte order mark, so columns of the first line begin after it.
std::size_t line_offset(std::string_view text, std::uint32_t number) {
  std::size_t at = text.starts_with("\xEF\xBB\xBF") ? 3 : 0;
  for (std::uint32_t line = 1; line < number; ++line) {
    at = text.find('\n', at);
    if (at == std::string_view::npos) return text.size();
    ++at;
  }
  return at;
}

// Returns the position after the string that begins at `i`.
std::size_t skip_string(std::string_view text, std::size_t i) {
  for (++i; i < text.size() && text[i] != '"'; ++i) {
    if (text[i] == '\\') ++i;
  }
  return std::min(i + 1, text.size());
}

// Returns the first position at or after `i` that is neither white space nor part of a comment.
std::size_t skip_space(std::string_view text, std::size_t i) {
  for (;;) {
    i = std::min(text.find_first_not_of(blanks, i), text.size());
    if (text.substr(i, 2) == "//") {
      i = std::min(text.find('\n', i), text.size());
    } else if (text.substr(i, 2) == "/*") {
      i = std::min(text.find("*/", i + 2), text.size() - 2) + 2;
    } else {
      return i;
    }
  }
}

// Returns the position after the value that begins at `i`.
std::size_t skip_value(std::string_view text, std::size_t i) {
  std::size_t depth = 0;
  while (i < text.size()) {
    const char c = text[i];
    if (c == '"') {
      i = skip_string(text, i);
      if (depth == 0) return i;
      continue;
    }
    if (text.substr(i, 2) == "//" || text.substr(i, 2) == "/*") {
      i = skip_space(text, i);
      continue;
    }
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') {
      if (depth == 0) return i;  // end of the enclosing object or array, after a number or literal
      if (--depth == 0) return i + 1;
    }
    if (depth == 0 && (c == ',' || blanks.find(c) != std::string_view::npos)) return i;
    ++i;
  }
  return i;
}

std::string object_of(const NewServer &server) {
  std::string out = "{";
  const auto key = [&](std::string_view name) {
    if (out.size() > 1) out += ", ";
    append_json_string(out, name);
    out += ": ";
  };
  const auto text = [&](std::string_view name, std::string_view value) {
    if (value.empty()) return;
    key(name);
    append_json_string(out, value);
  };
  const auto pairs = [&](std::string_view name, const auto &list) {
    if (list.empty()) return;
    key(name);
    out += '{';
    for (const auto &[member, value] : list) {
      if (!out.ends_with('{')) out += ", ";
      append_json_string(out, member);
      out += ": ";
      append_json_string(out, value);
    }
    out += '}';
  };
  text("url", server.url);
  text("command", server.command);
  if (!server.args.empty()) {
    key("args");
    out += '[';
    for (const std::string &arg : server.args) {
      if (!out.ends_with('[')) out += ", ";
      append_json_string(out, arg);
    }
    out += ']';
  }
  text("cwd", server.cwd);
  pairs("env", server.env);
  pairs("headers", server.headers);
  return out + '}';
}

// Returns the white space before the object's first member if it contains a line break, and an
// empty view otherwise.
std::string_view indent_of(std::string_view text, std::size_t object) {
  const std::size_t end = std::min(text.find_first_not_of(blanks, object + 1), text.size());
  const std::string_view space = text.substr(object + 1, end - object - 1);
  return space.find('\n') == std::string_view::npos ? std::string_view{} : space;
}

// Appends `member` to the object whose '{' is at `object`. Returns nullopt if a comment or a
// trailing comma precedes the closing '}'.
std::optional<std::string> appended(std::string_view text, std::size_t object, const Node &node,
                                    const std::string &member) {
  const bool empty = node.members.empty();
  const std::size_t last =
      empty ? object + 1 : skip_value(text, json_offset(text, node.members.back().value.place));
  const std::size_t close = text.find_first_not_of(blanks, last);
  if (close == text.npos || text[close] != '}') return std::nullopt;
  std::string indent(indent_of(text, object));
  if (empty && !indent.empty()) indent += "  ";  // until now, the indentation of '}'
  std::string out(text.substr(0, last));
  if (!empty) out += indent.empty() ? ", " : ",";
  return out.append(indent).append(member).append(text.substr(last));
}

// Inserts `member` as the first member of the object whose '{' is at `object`.
std::string inserted(std::string_view text, std::size_t object, bool empty,
                     const std::string &member) {
  const std::string indent(empty ? std::string_view{} : indent_of(text, object));
  std::string out(text.substr(0, object + 1));
  out.append(indent).append(member);
  if (!empty) out.append(indent.empty() ? ", " : ",");
  return out.append(text.substr(object + 1));
}

}  // namespace

std::size_t toml_offset(std::string_view text, const Place &place) {
  std::size_t at = line_offset(text, place.line);
  for (std::uint32_t column = 1; column < place.column && at < text.size(); ++column) {
    ++at;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0u) == 0x80) ++at;
  }
  return at;
}

std::size_t json_offset(std::string_view text, const Place &place) {
  return std::min(line_offset(text, place.line) + place.column - 1, text.size());
}

std::optional<std::string> add_to_json(std::string_view text, const Node &root,
                                       const NewServer &server) {
  return add_object_to_json(text, root, server.name, object_of(server));
}

std::optional<std::string> add_object_to_json(std::string_view text, const Node &root,
                                              std::string_view name,
                                              const std::string &object_text) {
  std::string member;
  append_json_string(member, name);
  member += ": " + object_text;
  const Member *section = servers_section(root);
  const Node &in = section == nullptr ? root : section->value;
  const std::size_t object = json_offset(text, in.place);
  if (object >= text.size() || text[object] != '{') return std::nullopt;
  if (section == nullptr) member = "\"mcpServers\": {" + member + '}';
  if (auto out = appended(text, object, in, member)) return out;
  return inserted(text, object, in.members.empty(), member);
}

std::optional<std::string> remove_from_json(std::string_view text, const Node &root,
                                            std::string_view name) {
  const auto &members = servers_section(root)->value.members;
  const auto at = std::find_if(members.begin(), members.end(),
                               [&](const Member &member) { return member.name == name; });
  if (at == members.end()) return std::nullopt;
  std::size_t begin = json_offset(text, at->place);
  std::size_t end = skip_value(text, json_offset(text, at->value.place));
  const std::size_t next = skip_space(text, end);
  if (next < text.size() && text[next] == ',') {
    // Erases up to the next member, or up to the comment before that member.
    end = std::min(text.find_first_not_of(blanks, next + 1), text.size());
  } else if (const std::size_t last = text.substr(0, begin).find_last_not_of(blanks);
             last != std::string_view::npos && text[last] == ',') {
    begin = text.find_last_not_of(blanks, last - 1) + 1;
  }
  return std::string(text.substr(0, begin)).append(text.substr(end));
}

std::optional<std::string> disable_in_json(std::string_view text, const Node &root,
                                           std::string_view name) {
  const Node &server = *servers_section(root)->value.find(name);
  const std::size_t object = json_offset(text, server.place);
  if (object >= text.size() || text[object] != '{') return std::nullopt;
  return inserted(text, object, server.members.empty(), "\"disabled\": true");
}

}  // namespace bulkhead::profiles
