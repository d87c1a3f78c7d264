// Approved tool definitions, and different definitions that were observed later. A definition is
// approved by a user or on first use. These are plain values; core/route/pins.hpp compares them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace bulkhead {

struct PinRules {
  enum class Mode : std::uint8_t {
    off,     // definitions are not compared
    watch,   // changes are recorded and visible to policies
    enforce  // unapproved tools are neither listed nor called
  };
  Mode mode = Mode::watch;
  bool accept_new = false;  // new tools of a known server are approved automatically
  bool operator==(const PinRules &) const = default;
};

// One tool of a server in the profile. Hashes are 32 hex digits. A shape is the hash of the
// definition without the tool's name, and is used to detect renamed tools.
struct ToolPin {
  std::string server, tool;      // the server's name in the profile, the tool's original name
  std::string hash, shape;       // approved definition; empty if never approved
  std::string seen, seen_shape;  // current definition if it differs; otherwise empty
  std::string renamed_from;      // of an unapproved tool: the tool that had this definition
  bool approved() const { return !hash.empty() && seen.empty(); }
  bool operator==(const ToolPin &) const = default;
};

// A new or changed pin, with the tool's definition for the hash `seen`, or for `hash` if `seen` is
// empty. The definition is JSON as the server sent it; empty if longer than
// max_pin_definition_bytes.
struct PinNews {
  ToolPin pin;
  std::string definition;
};

inline constexpr std::size_t most_pins = 10'000;         // for all servers of a profile
inline constexpr std::size_t max_pin_name_bytes = 512;   // longer names are never approved
inline constexpr std::size_t max_pin_text_bytes = 2048;  // of a stored description
inline constexpr std::size_t max_pin_definition_bytes = 32u << 10;  // a longer one is not stored
inline constexpr std::size_t max_pins_told = 512;  // in one message between processes

}  // namespace bulkhead
