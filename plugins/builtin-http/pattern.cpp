#include "builtin-http/pattern.hpp"

#include <re2/re2.h>

namespace builtin_http {
namespace {

constexpr std::size_t max_pattern = 4096;
constexpr std::int64_t max_program_bytes = 4 << 20;

}  // namespace

Pattern::Pattern() = default;
Pattern::~Pattern() = default;

bool Pattern::parse(std::string_view text, std::string *problem) {
  if (text.empty() || text.size() > max_pattern) {
    *problem = text.empty() ? "the argument \"pattern\" must not be empty"
                            : "the argument \"pattern\" is longer than 4096 bytes";
    return false;
  }
  re2::RE2::Options options;
  options.set_case_sensitive(false);
  options.set_log_errors(false);
  options.set_never_capture(true);
  options.set_max_mem(max_program_bytes);
  text_ = text;
  compiled_ = std::make_unique<re2::RE2>(text_, options);
  if (compiled_->ok()) return true;
  *problem = "invalid regular expression: " + compiled_->error() +
             " (the syntax is RE2's: no lookaround, no back-references)";
  return false;
}

bool Pattern::finds(std::string_view line) const {
  return re2::RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), *compiled_);
}

}  // namespace builtin_http
