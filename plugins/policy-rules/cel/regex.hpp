// Wraps regular expressions in RE2 syntax. Matching takes linear time because RE2 does not
// backtrack.
#pragma once

#include <re2/re2.h>

#include <string_view>

#include "context.hpp"

namespace bulkhead::cel {

class Regex {
 public:
  static constexpr std::size_t kMaxPattern = 4096;       // bytes
  static constexpr std::int64_t kMaxMemory = 256 << 10;  // bytes, including the automaton

  explicit Regex(std::string_view pattern) : re2_({pattern.data(), pattern.size()}, options()) {}

  bool ok() const { return re2_.ok(); }
  const std::string &error() const { return re2_.error(); }
  // Returns the number of instructions in the compiled program. Requires ok().
  std::size_t size() const { return static_cast<std::size_t>(re2_.ProgramSize()); }
  // Returns the cost of compiling the pattern, in steps. If the pattern is too large, returns an
  // estimate of the work done before the compilation failed.
  std::uint64_t steps_to_compile() const {
    if (re2_.error_code() == RE2::ErrorPatternTooLarge) return 20'000;
    return ok() ? 4 * size() : 0;
  }
  // Returns a CEL bool that is true if the pattern matches anywhere in the text, or an error if the
  // budget is exceeded.
  Value search(Context &context, std::string_view text) const {
    if (!context.charge(1 + text.size() / 4)) return Value::error("");
    return Value::of(RE2::PartialMatch({text.data(), text.size()}, re2_));
  }

 private:
  static RE2::Options options() {
    RE2::Options options;
    options.set_log_errors(false);
    options.set_never_capture(true);
    options.set_max_mem(kMaxMemory);
    return options;
  }
  RE2 re2_;
};

}  // namespace bulkhead::cel
