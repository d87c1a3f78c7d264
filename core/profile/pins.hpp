// Approved definitions of servers' tools, and those seen since. A definition is approved by a
// person or at its first use. Plain values; core/route/pins.hpp compares them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace bulkhead {

struct PinRules {
  enum class Mode : std::uint8_t {
    off,     // definitions are not compared
    watch,   // changes are noted, and policies can use them
    enforce  // unapproved tools are neither listed nor called
  };
  Mode mode = Mode::watch;
  bool accept_new = false;  // new tools of a known server are approved automatically
  bool operator==(const PinRules &) const = default;
};

// One tool of one server of the profile. Hashes are 32 hex digits. A shape is the hash of the
// definition without the tool's name, which detects renamed tools.
struct ToolPin {
  std::string server, tool;      // the server's name in the profile, the tool's original name
  std::string hash, shape;       // approved; empty: never
  std::string seen, seen_shape;  // the current definition if it differs; empty: it does not
  std::string renamed_from;      // of an unapproved tool: the tool that had this definition
  bool approved() const { return !hash.empty() && seen.empty(); }
  bool operator==(const ToolPin &) const = default;
};

// A new or changed pin, with the description of `seen`, or of `hash` if `seen` is empty.
struct PinNews {
  ToolPin pin;
  std::string text;
};

inline constexpr std::size_t most_pins = 10'000;         // of all servers of a profile
inline constexpr std::size_t max_pin_name_bytes = 512;   // a longer name is never approved
inline constexpr std::size_t max_pin_text_bytes = 2048;  // of a kept description
inline constexpr std::size_t max_pins_told = 512;        // in one message between processes

}  // namespace bulkhead
