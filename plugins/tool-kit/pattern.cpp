#include "tool-kit/pattern.hpp"

#include <re2/re2.h>

#include <algorithm>

namespace tool_kit {
namespace {

constexpr std::size_t max_pattern = 4096;
constexpr std::int64_t max_program_bytes = 4 << 20;
// Limits how much text is searched between two calls of must_stop. In the worst case, every
// instruction of the program is executed for each byte, which takes about 2 ns per instruction.
constexpr std::size_t steps_at_once = 32u << 20;
constexpr std::size_t least_window = 8u << 10, largest_window = 2u << 20;

}  // namespace

Pattern::Pattern() = default;
Pattern::~Pattern() = default;
Pattern::Pattern(Pattern &&) noexcept = default;
Pattern &Pattern::operator=(Pattern &&) noexcept = default;

bool Pattern::parse(std::string_view argument, std::string_view text, Case letters,
                    std::string *problem) {
  if (text.empty() || text.size() > max_pattern) {
    *problem = "the argument \"" + std::string(argument) + "\"" +
               (text.empty() ? " must not be empty" : " is longer than 4096 bytes");
    return false;
  }
  re2::RE2::Options options;
  options.set_case_sensitive(letters == Case::counts);
  options.set_log_errors(false);
  options.set_never_capture(true);
  options.set_max_mem(max_program_bytes);
  text_ = text;
  compiled_ = std::make_unique<re2::RE2>(text_, options);
  if (!compiled_->ok()) {
    *problem = "invalid regular expression: " + compiled_->error() +
               " (the syntax is RE2's: no lookaround, no back-references)";
    return false;
  }
  const auto size = static_cast<std::size_t>(std::max(compiled_->ProgramSize(), 1));
  window_ = std::clamp(steps_at_once / size, least_window, largest_window);
  return true;
}

bool Pattern::finds(std::string_view line, const std::function<bool()> &must_stop) const {
  const re2::StringPiece text(line.data(), line.size());
  // Windows overlap by half, so matches that cross a window boundary are found.
  for (std::size_t begin = 0;; begin += window_ / 2) {
    const std::size_t end = std::min(begin + window_, line.size());
    if (compiled_->Match(text, begin, end, re2::RE2::UNANCHORED, nullptr, 0)) return true;
    if (end == line.size() || must_stop()) return false;
  }
}

}  // namespace tool_kit
