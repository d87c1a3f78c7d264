// Rules of .gitignore files (gitignore(5)).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace builtin_files {

class IgnoreRules {
 public:
  // `text` is the content of the file. Only the first 1,000 rules are used.
  static IgnoreRules parse(std::string_view text);

  enum class Verdict { none, ignored, kept };
  // `path` is relative to the folder of the .gitignore file. The last matching rule decides.
  Verdict judge(std::string_view path, bool is_folder) const;
  bool empty() const noexcept { return rules_.empty(); }

 private:
  struct Rule {
    std::string glob;
    bool keeps;         // "!..."
    bool folders_only;  // ".../"
  };
  std::vector<Rule> rules_;
};

}  // namespace builtin_files
