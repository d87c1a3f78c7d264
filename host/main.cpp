// Runs one command of the `bulkhead` program and returns its exit code.
#include <malloc.h>

#include <exception>
#include <string>

#include "command_line/arguments.hpp"
#include "command_line/commands.hpp"
#include "common/console.hpp"
#include "common/paths.hpp"
#include "common/signals.hpp"
#include "common/text.hpp"
#include "compartment/compartment.hpp"
#include "relay/relay.hpp"
#include "service/control_compartment.hpp"

namespace bulkhead::program {

namespace {

// Makes the allocator keep up to kept_bytes of free memory. By default, the C library returns large
// blocks, and free memory at the end of the heap, to the kernel. Every call allocates buffers,
// which would then cause page faults again. For an argument of 100 KB, these page faults take 40 %
// of the processor time of a call.
void limit_memory_trimming() {
  constexpr int kept_bytes = 8 << 20, mapped_alone_bytes = 4 << 20;
  ::mallopt(M_TRIM_THRESHOLD, kept_bytes);
  ::mallopt(M_MMAP_THRESHOLD, mapped_alone_bytes);
}

}  // namespace
}  // namespace bulkhead::program

int main(int argc, char **argv) {
  using namespace bulkhead::program;
  limit_memory_trimming();
  // Only the supervisor uses this command, so --help does not list it.
  if (argc == 3 && std::string_view(argv[1]) == "compartment") {
    return bulkhead::run_compartment(make_control_compartment);
  }
  // The relay parses its own command line. It shares this parser with the small relay program for
  // guests.
  if (argc > 1 && std::string_view(argv[1]) == "relay") {
    return bulkhead::relay::run("bulkhead relay", argc - 1, argv + 1);
  }
  install_signal_handlers();
  try {
    remove_parent_steps_from_environment();
    const auto parsed = parse_arguments(argc, argv);
    if (const int *code = std::get_if<int>(&parsed)) return *code;
    const auto &arguments = std::get<Arguments>(parsed);
    return arguments.run(arguments);
  } catch (const std::exception &error) {  // usually out of memory
    return complain(error.what());
  }
}
