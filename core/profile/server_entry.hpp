// A server's definition on its way from the process that reads a request to the one that keeps the
// profile: values, no text that anybody would have to parse again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace bulkhead {

struct ServerEntry {
  static constexpr std::size_t max_values = 10'000;

  // A tree as a list: each value stands before those that are in it.
  struct Value {
    std::uint8_t kind = 0;   // a profiles::Kind
    bool flag = false;       // of a boolean
    std::uint32_t size = 0;  // how many of the following are directly in this array or table
    std::string name;        // of a table's member
    std::string text;        // of a string or number
  };

  std::string id;             // the server's name
  std::vector<Value> values;  // the table of its members
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

// Reads one JSON object: "id" (the server's name) and the members of a server of mcpServers, of
// which "allowed_tools" is another spelling of allowTools in which an empty list hides nothing.
// BH_E_INVALID: it is no such object. Whether it is a good server is for load_profile().
Result<ServerEntry> read_server_entry(std::string_view json);

}  // namespace bulkhead
