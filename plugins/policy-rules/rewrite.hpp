// Rewrites JSON by replacing regular expression matches in strings or by removing members.
// Everything else stays unchanged, except for white space and escape sequences.
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

// `text` is nullopt if the input is invalid JSON or nested deeper than JsonText::kMaxDepth, or if
// the output would exceed Rewrite::kMaxOutput.
struct Rewritten {
  std::optional<std::string> text;
  bool changed = false;  // true if a string was replaced or a member was removed
};

class Rewrite {
 public:
  static constexpr std::size_t kMaxPattern = 4096;  // bytes
  static constexpr std::size_t kMaxValue = 65536;
  static constexpr std::size_t kMaxPath = 32;  // components
  static constexpr std::size_t kMaxOutput = std::size_t{64} << 20;

  // Creates a rewrite that replaces regular expression matches. `target` has the form FIELD =~
  // "REGEX". For a request, FIELD is arguments or arguments.PATH. For a response, FIELD is
  // response.content (each of kContentNames), response.text (all strings of the result) or
  // response.PATH. `value` is the replacement, in which ${name} inserts a named group. An error
  // message states what is invalid and what is permitted.
  static std::expected<Rewrite, std::string> replacing(Event event, std::string_view target,
                                                       std::string_view value);
  // Creates a rewrite that removes members. `paths` are relative to the arguments or the result.
  static std::expected<Rewrite, std::string> stripping(const std::vector<std::string> &paths);

  // Rewrites the JSON of arguments or of a result. Thread-safe.
  Rewritten apply(std::string_view json) const;

 private:
  using Path = std::vector<std::string>;
  friend class Rewriter;

  std::unique_ptr<const RE2> regex_;
  std::string value_;     // RE2 replacement, in which \1 inserts a group
  Path path_;             // the part to rewrite; empty for the whole JSON
  bool content_ = false;  // the path starts with "content", which means each of kContentNames
  std::vector<Path> strip_;
};

}  // namespace bulkhead::rules
