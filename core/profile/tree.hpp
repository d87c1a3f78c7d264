// Defines the document tree of a profile, for both TOML and JSON. Each value has a location.
// Internal to the profile libraries.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::profiles {

struct Place {
  std::uint16_t layer = 0;  // index of the layer
  std::uint32_t line = 0, column = 0;
};

enum class Kind : std::uint8_t { null, boolean, number, string, array, table, date };
std::string_view to_string(Kind kind) noexcept;  // "a table", for messages

struct Member;

struct Node {
  Kind kind = Kind::null;
  bool flag = false;  // value of a boolean
  Place place;
  std::string text;             // value of a string; for a number, its text in JSON syntax
  std::vector<Node> items;      // elements of an array
  std::vector<Member> members;  // members of a table, in file order; names are unique

  // These functions are defined after Member because Node cannot be copied or destroyed while
  // Member is incomplete.
  Node() noexcept;
  Node(Kind k, Place p) noexcept;
  Node(const Node &);
  Node(Node &&) noexcept;
  Node &operator=(const Node &);
  Node &operator=(Node &&) noexcept;
  ~Node();
  const Node *find(std::string_view name) const noexcept;
};

struct Member {
  std::string name;
  Place place;  // location of the name
  Node value;
};

// Returns true for a server or a plugin with `disabled = true` or `enabled = false`.
bool is_disabled(const Node &entry);

// Merges the table `over` into the table `base`. If a member is a table in both, the tables are
// merged. Other members of `over` replace those of `base`.
void merge_tables(Node &base, Node &&over);

// Appends a node as JSON. The recursion depth is limited because the readers that build trees limit
// it (kProfileDepth).
void append_json(std::string &out, const Node &node);
void append_json_string(std::string &out, std::string_view text);

}  // namespace bulkhead::profiles
