// Rewrites JSON: replaces regular expression matches in strings, or removes members. Unchanged
// parts keep their spelling, except for white space and escapes.
#pragma once

#include <re2/re2.h>

#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "roots.hpp"

namespace bulkhead::rules {

// `text` is nullopt if the input is not JSON, if it is nested deeper than JsonText::kMaxDepth, or
// if the output would exceed Rewrite::kMaxOutput.
struct Rewritten {
  std::optional<std::string> text;
  bool changed = false;  // true if different from the input
};

class Rewrite {
 public:
  static constexpr std::size_t kMaxPattern = 4096;  // bytes
  static constexpr std::size_t kMaxValue = 65536;
  static constexpr std::size_t kMaxPath = 32;  // names
  static constexpr std::size_t kMaxOutput = std::size_t{64} << 20;

  // `target` has the form FIELD =~ "REGEX". For a request, FIELD is arguments or arguments.PATH.
  // For a response, FIELD is response.content, response.text (every string of the result) or
  // response.PATH. In `value`, ${name} is the content of a named group. An error states what is
  // invalid and what is allowed.
  static std::expected<Rewrite, std::string> replacing(Event event, std::string_view target,
                                                       std::string_view value);
  // `paths` are relative to the arguments or the result.
  static std::expected<Rewrite, std::string> stripping(const std::vector<std::string> &paths);

  // Rewrites arguments or a result. Thread-safe.
  Rewritten apply(std::string_view json) const;

 private:
  using Path = std::vector<std::string>;
  friend class Rewriter;

  std::unique_ptr<const RE2> regex_;
  std::string value_;  // in RE2 syntax: \1 refers to a group
  Path path_;          // path to rewrite; empty for everything
  std::vector<Path> strip_;
};

}  // namespace bulkhead::rules
