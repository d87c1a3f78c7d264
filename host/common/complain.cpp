#include "common/complain.hpp"

#include "common/console.hpp"
#include "common/text.hpp"

namespace bulkhead::program {

int report_config_errors(const std::vector<std::string> &lines) {
  std::string out;
  for (const auto &line : lines) out += printable(line) + "\n";
  Console::get().write(out);
  return exit_failed;
}

int complain(std::string_view text, int code) {
  Console::get().progress("");
  Console::get().write("bulkhead: " + printable(text, true) + "\n");
  return code;
}

}  // namespace bulkhead::program
