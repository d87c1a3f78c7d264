// A regular expression that a model wrote: case does not count, and no pattern takes longer than
// the text it searches (RE2: no backtracking).
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace re2 {
class RE2;
}

namespace builtin_http {

class Pattern {
 public:
  Pattern();
  ~Pattern();

  // False: *problem is a sentence.
  bool parse(std::string_view text, std::string *problem);

  // Is there a match in this line? Thread: any.
  bool finds(std::string_view line) const;
  const std::string &text() const { return text_; }

 private:
  std::string text_;
  std::unique_ptr<re2::RE2> compiled_;
};

}  // namespace builtin_http
