// The relay's command line, in a form that costs a guest nothing; `bulkhead relay` has the same.
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
  std::uint32_t port = 5002;  // and what the kernel's command line adds
  std::string unix_path, hybrid_path;
  std::string meta_prefix = "CAPSEM_META";
  std::string name;  // empty: of the parent process
};

// One option that takes a value, for the help of either program.
struct OptionText {
  const char *name, *type, *help;
};
std::span<const OptionText> option_texts() noexcept;

// argv[0] is the program, or `relay`. The options, or the exit code when there is nothing left to
// do; usage errors are said on standard error. `program` is how the person has called us.
std::variant<Options, int> parse_options(std::string_view program, int argc,
                                         const char *const *argv);

// The connector's definition of the endpoint.
std::string definition_of(const Options &options, std::string_view process_name);

// What capsem.vsock_port_offset= on this kernel command line says; 0: nothing.
std::uint32_t port_offset(std::string_view command_line) noexcept;

}  // namespace bulkhead::relay
