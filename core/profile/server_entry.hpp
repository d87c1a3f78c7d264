// Defines ServerEntry, a server definition in a form that can be sent between processes. The
// process that parses a request sends the parsed values to the process that has the profile, so the
// text is parsed only once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace bulkhead {

struct ServerEntry {
  static constexpr std::size_t max_values = 10'000;

  // One node of the tree. Nodes are listed in preorder.
  struct Value {
    std::uint8_t kind = 0;   // a profiles::Kind
    bool flag = false;       // value of a boolean
    std::uint32_t size = 0;  // number of direct items or members
    std::string name;        // member name, if the node is a member of a table
    std::string text;        // value of a string or number
  };

  std::string id;             // the server's name
  std::vector<Value> values;  // the server's members: a tree whose root is a table
};

template <class Ar>
void archive(Ar &ar, ServerEntry::Value &v) {
  auto &[kind, flag, size, name, text] = v;
  ar(kind, flag, size, name, text);
}
template <class Ar>
void archive(Ar &ar, ServerEntry &v) {
  auto &[id, values] = v;
  ar(id, values);
}

// Reads a JSON object with "id" (the server's name) and the members of an mcpServers entry.
// "allowed_tools" is an alias for allowTools, except that an empty list allows all tools. Returns
// BH_E_INVALID if the text is not such an object. Does not validate the server; load_profile()
// does.
Result<ServerEntry> read_server_entry(std::string_view json);

}  // namespace bulkhead
