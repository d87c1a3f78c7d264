// What is known of servers' tool definitions: those that a person, or their first use, has
// approved, and those that were seen since. Plain values; core/route/pins.hpp compares them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace bulkhead {

struct PinRules {
  enum class Mode : std::uint8_t {
    off,     // definitions are not looked at
    watch,   // what changes is noted, and policy can tell
    enforce  // what is not approved is neither listed nor called
  };
  Mode mode = Mode::watch;
  bool accept_new = false;  // tools that a known server did not have before are approved unseen
  bool operator==(const PinRules &) const = default;
};

// One tool of one server of the profile. Hashes are 32 hex digits; a shape is that of the
// definition without the tool's name, by which a renamed one is found.
struct ToolPin {
  std::string server, tool;      // the server's name in the profile, the tool's original name
  std::string hash, shape;       // approved; empty: never
  std::string seen, seen_shape;  // another one that it has now; empty: none
  std::string renamed_from;      // of one that is not approved: the tool that had this definition
  bool approved() const { return !hash.empty() && seen.empty(); }
  bool operator==(const ToolPin &) const = default;
};

// A pin that is new or has changed, with the description that goes with it: of `seen`, if there is
// one, else of `hash`.
struct PinNews {
  ToolPin pin;
  std::string text;
};

inline constexpr std::size_t most_pins = 10'000;         // of all servers of a profile
inline constexpr std::size_t max_pin_name_bytes = 512;   // a longer name is never approved
inline constexpr std::size_t max_pin_text_bytes = 2048;  // what is kept of a description
inline constexpr std::size_t max_pins_told = 512;        // in one message between processes

}  // namespace bulkhead
