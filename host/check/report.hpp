// The result of a check, and its output formats.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "check/rules.hpp"

namespace bulkhead::check {

struct Report {
  static constexpr std::size_t most_per_rule = 8;  // further violations of a rule are dropped

  std::string file, id, version;
  std::vector<std::string> provides;
  std::set<Rule> checked;                               // includes the violated rules
  std::map<Rule, std::vector<std::string>> violations;  // what was observed
  // What could not be checked, and why; for example because the plugin needs a configuration.
  std::vector<std::string> not_checked;
  std::vector<std::string> notes;

  void violated(Rule rule, std::string what);
  bool complete() const noexcept { return not_checked.empty(); }
};

// Text for terminals; JSON; and JUnit's XML, as CI systems read it (one test case for each rule).
std::string to_text(const Report &report);
std::string to_json(const Report &report);
std::string to_junit(const Report &report);

}  // namespace bulkhead::check
