// The relay's command line. The parser is small because guests have little memory. `bulkhead relay`
// has the same options.
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
  std::uint32_t port = 5002;  // plus the offset on the kernel command line
  std::string unix_path, hybrid_path;
  std::string meta_prefix = "CAPSEM_META";
  std::string name;  // empty: the name of the parent process
};

// An option with a value, as shown in the help of both programs.
struct OptionText {
  const char *name, *type, *help;
};
std::span<const OptionText> option_texts() noexcept;

// argv[0] is the program, or `relay`. Returns the options, or an exit code if the program is
// finished; usage errors are printed to standard error. `program` is the name that the user typed.
std::variant<Options, int> parse_options(std::string_view program, int argc,
                                         const char *const *argv);

// Returns the endpoint's definition for the connector.
std::string definition_of(const Options &options, std::string_view process_name);

// Returns the value of capsem.vsock_port_offset= on this kernel command line, or 0 if it is
// missing.
std::uint32_t port_offset(std::string_view command_line) noexcept;

}  // namespace bulkhead::relay
