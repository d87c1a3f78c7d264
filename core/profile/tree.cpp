#include "profile/tree.hpp"

#include <unordered_map>
#include <utility>

namespace bulkhead::profiles {

std::string_view to_string(Kind kind) noexcept {
  switch (kind) {
    case Kind::null:
      return "null";
    case Kind::boolean:
      return "a boolean";
    case Kind::number:
      return "a number";
    case Kind::string:
      return "a string";
    case Kind::array:
      return "an array";
    case Kind::table:
      return "a table";
    case Kind::date:
      return "a date or time";
  }
  return "unknown";
}

Node::Node() noexcept = default;
Node::Node(Kind k, Place p) noexcept : kind(k), place(p) {}
Node::Node(const Node &) = default;
Node::Node(Node &&) noexcept = default;
Node &Node::operator=(const Node &) = default;
Node &Node::operator=(Node &&) noexcept = default;
Node::~Node() = default;

const Node *Node::find(std::string_view name) const noexcept {
  for (const Member &member : members)
    if (member.name == name) return &member.value;
  return nullptr;
}

bool is_disabled(const Node &entry) {
  const auto is = [&](std::string_view key, bool flag) {
    const Node *value = entry.find(key);
    return value != nullptr && value->kind == Kind::boolean && value->flag == flag;
  };
  return is("disabled", true) || is("enabled", false);
}

void merge_tables(Node &base, Node &&over) {
  std::unordered_map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < base.members.size(); ++i) index.emplace(base.members[i].name, i);
  for (Member &member : over.members) {
    const auto found = index.find(member.name);
    if (found == index.end()) {
      base.members.push_back(std::move(member));
      continue;
    }
    Member &old = base.members[found->second];
    if (old.value.kind == Kind::table && member.value.kind == Kind::table) {
      merge_tables(old.value, std::move(member.value));
      old.value.place = member.value.place;
    } else {
      old.value = std::move(member.value);
    }
    old.place = member.place;
  }
}

// Does not use the SDK's JSON writer: rule digests are computed from this text, so the escape
// sequences must not change.
void append_json_string(std::string &out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

namespace {

void append_members(std::string &out, const Node &node) {
  out += '{';
  for (std::size_t i = 0; i < node.members.size(); ++i) {
    if (i > 0) out += ',';
    append_json_string(out, node.members[i].name);
    out += ':';
    append_json(out, node.members[i].value);
  }
  out += '}';
}

}  // namespace

void append_json(std::string &out, const Node &node) {
  switch (node.kind) {
    case Kind::null:
      out += "null";
      break;
    case Kind::boolean:
      out += node.flag ? "true" : "false";
      break;
    case Kind::number:
      out += node.text;
      break;
    case Kind::string:
    case Kind::date:
      append_json_string(out, node.text);
      break;
    case Kind::array:
      out += '[';
      for (std::size_t i = 0; i < node.items.size(); ++i) {
        if (i > 0) out += ',';
        append_json(out, node.items[i]);
      }
      out += ']';
      break;
    case Kind::table:
      append_members(out, node);
      break;
  }
}

}  // namespace bulkhead::profiles
