// Parses and evaluates .gitignore rules (gitignore(5)).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace builtin_files {

class IgnoreRules {
 public:
  // Parses the content of a .gitignore file. Ignores all rules after the first 1,000.
  static IgnoreRules parse(std::string_view text);

  enum class Verdict { none, ignored, kept };
  // Returns the verdict of the last rule that matches. `path` is relative to the folder of the
  // .gitignore file.
  Verdict judge(std::string_view path, bool is_folder) const;
  bool empty() const noexcept { return rules_.empty(); }

 private:
  struct Rule {
    std::string glob;
    bool keeps;         // the rule starts with "!"
    bool folders_only;  // the rule ends with "/"
  };
  std::vector<Rule> rules_;
};

}  // namespace builtin_files
