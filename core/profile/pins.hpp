// Defines pins. A pin records the approved definition of a tool and, if the tool has changed since,
// its current definition. A definition is approved by a user or on first use. core/route/pins.hpp
// compares definitions.
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

// The pin for one tool. Hashes are 32 hex digits. A shape is the hash of the definition without the
// tool's name; it is used to detect renamed tools.
struct ToolPin {
  std::string server, tool;      // server name in the profile, and original tool name
  std::string hash, shape;       // the approved definition; empty if no definition was approved
  std::string seen, seen_shape;  // the current definition if it differs; otherwise empty
  // For an unapproved tool: the name of the tool that previously had this definition.
  std::string renamed_from;
  bool approved() const { return !hash.empty() && seen.empty(); }
  bool operator==(const ToolPin &) const = default;
};

// A new or changed pin. `definition` is the tool's definition, as the JSON text that the server
// sent. It is empty if the text is longer than max_pin_definition_bytes. The hash of the text is
// pin.seen, or pin.hash if pin.seen is empty.
struct PinNews {
  ToolPin pin;
  std::string definition;
};

// Maximum number of pins in a profile, for all servers together.
inline constexpr std::size_t most_pins = 10'000;
// Tools with longer names are never approved.
inline constexpr std::size_t max_pin_name_bytes = 512;
// Maximum size of a stored description.
inline constexpr std::size_t max_pin_text_bytes = 2048;
// Longer definitions are not stored.
inline constexpr std::size_t max_pin_definition_bytes = 32u << 10;
// Maximum number of pins in one message between processes.
inline constexpr std::size_t max_pins_told = 512;

}  // namespace bulkhead
