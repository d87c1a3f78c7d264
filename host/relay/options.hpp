// Parses the relay's command line, which is the same for bulkhead-relay and `bulkhead relay`. CLI11
// is not used here, because guests have little memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace bulkhead::relay {

struct Options {
  bool doctor = false;
  std::uint32_t cid = 2;
  std::uint32_t port = 5002;  // without --port, port_offset() is added
  std::string unix_path, hybrid_path;
  std::string meta_prefix = "CAPSEM_META";
  std::string name;  // empty: the name of the parent process
};

// An option with a value, as shown in the help of `bulkhead-relay` and `bulkhead relay`.
struct OptionText {
  const char *name, *type, *help;
};
std::span<const OptionText> option_texts() noexcept;

// Returns the options, or an exit code if there is nothing to run. Usage errors are printed to
// standard error. argv[0] is the program or "relay"; `program` is what the user typed.
std::variant<Options, int> parse_options(std::string_view program, int argc,
                                         const char *const *argv);

// Returns the definition of the endpoint as JSON for the connector.
std::string definition_of(const Options &options, std::string_view process_name);

// Returns the value of capsem.vsock_port_offset= in the kernel command line, or 0 if it is missing.
std::uint32_t port_offset(std::string_view command_line) noexcept;

}  // namespace bulkhead::relay
