// Collects the findings of `doctor` in the order in which they were made.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace bulkhead::program {

struct Finding {
  enum class Kind : std::uint8_t { good, doubtful, bad };
  Kind kind;
  std::string text, advice;  // advice: what the user should do; may be empty
};

class Findings {
 public:
  void good(std::string text) { all_.push_back({Finding::Kind::good, std::move(text), {}}); }
  void doubtful(std::string text, std::string advice) {
    all_.push_back({Finding::Kind::doubtful, std::move(text), std::move(advice)});
  }
  void bad(std::string text, std::string advice) {
    all_.push_back({Finding::Kind::bad, std::move(text), std::move(advice)});
  }
  const std::vector<Finding> &all() const noexcept { return all_; }
  bool any_bad() const {
    return std::any_of(all_.begin(), all_.end(),
                       [](const Finding &finding) { return finding.kind == Finding::Kind::bad; });
  }

 private:
  std::vector<Finding> all_;
};

}  // namespace bulkhead::program
