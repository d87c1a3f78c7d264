#include "profile/server_entry.hpp"

#include <algorithm>
#include <utility>

#include "profile/parse.hpp"
#include "profile/server_entry_tree.hpp"

namespace bulkhead {
namespace profiles {
namespace {

constexpr std::size_t max_number_bytes = 64;

// Returns true if the member must be dropped. This applies to "id", which is stored separately, and
// to two lists from the API, which have no effect if they are empty.
bool drops(const Member &member) {
  const bool list = member.name == "allowed_tools" || member.name == "credential_refs";
  const Node &value = member.value;
  const bool empty = value.kind == Kind::null || (value.kind == Kind::array && value.items.empty());
  return member.name == "id" || (list && empty);
}

void append_values(const std::string &name, const Node &node,
                   std::vector<ServerEntry::Value> *out) {
  ServerEntry::Value value;
  value.kind = static_cast<std::uint8_t>(node.kind);
  value.flag = node.flag;
  value.size = static_cast<std::uint32_t>(node.items.size() + node.members.size());
  value.name = name;
  value.text = node.text;
  out->push_back(std::move(value));
  for (const Node &item : node.items) append_values("", item, out);
  for (const Member &member : node.members) append_values(member.name, member.value, out);
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= max_number_bytes &&
         text.find_first_not_of("0123456789+-.eE") == std::string_view::npos;
}

// Builds a tree from a list of nodes in preorder.
class TreeReader {
 public:
  explicit TreeReader(const std::vector<ServerEntry::Value> &values) : values_(values) {}

  bool read(Node *out, std::size_t depth = 0) {
    if (at_ == values_.size() || depth > kProfileDepth) return false;
    const ServerEntry::Value &value = values_[at_++];
    if (value.kind >= static_cast<std::uint8_t>(Kind::date)) return false;
    *out = Node(static_cast<Kind>(value.kind), {});
    out->flag = value.flag;
    out->text = value.text;
    if (out->kind == Kind::number && !is_number(value.text)) return false;
    const bool holds_values = out->kind == Kind::array || out->kind == Kind::table;
    if (!holds_values) return value.size == 0;
    for (std::uint32_t i = 0; i < value.size; ++i) {
      Node inside;
      if (at_ == values_.size()) return false;
      const std::string &name = values_[at_].name;
      if (!read(&inside, depth + 1)) return false;
      if (out->kind == Kind::array) {
        out->items.push_back(std::move(inside));
      } else {
        out->members.push_back({name, {}, std::move(inside)});
      }
    }
    return true;
  }
  bool done() const { return at_ == values_.size(); }

 private:
  const std::vector<ServerEntry::Value> &values_;
  std::size_t at_ = 0;
};

}  // namespace

bool to_tree(const ServerEntry &entry, Node *out) {
  TreeReader reader(entry.values);
  return entry.values.size() <= ServerEntry::max_values && reader.read(out) && reader.done() &&
         out->kind == Kind::table;
}

}  // namespace profiles

Result<ServerEntry> read_server_entry(std::string_view json) {
  using namespace profiles;
  const std::vector<ProfileLayer> layers{{"request", "request.json", std::string(json)}};
  Diagnostics diagnostics(layers);
  ParseOptions options;
  options.max_values = ServerEntry::max_values;
  Node root(Kind::table, {});
  if (!parse_layer(layers.front(), 0, options, &root, diagnostics) || diagnostics.failed()) {
    const std::vector<ProfileError> errors = diagnostics.take_errors();
    return fail(BH_E_INVALID, errors.empty() ? "not a JSON object" : to_string(errors.front()));
  }
  const Node *id = root.find("id");
  if (id == nullptr || id->kind != Kind::string || id->text.empty()) {
    return fail(BH_E_INVALID, "\"id\" is required and must be a string that is not empty");
  }
  ServerEntry entry;
  entry.id = id->text;
  std::erase_if(root.members, drops);
  for (Member &member : root.members) {
    if (member.name == "allowed_tools") member.name = "allowTools";
  }
  append_values("", root, &entry.values);
  return entry;
}

}  // namespace bulkhead
