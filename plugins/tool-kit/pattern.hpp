// A regular expression that a model wrote, looked for within lines. RE2: no pattern takes longer
// than in proportion to the text, whatever both hold.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace re2 {
class RE2;
}

namespace tool_kit {

enum class Case { counts, ignored };

class Pattern {
 public:
  Pattern();
  ~Pattern();
  Pattern(Pattern &&) noexcept;
  Pattern &operator=(Pattern &&) noexcept;

  // At most 4096 bytes, compiled at most 4 MiB. False: *problem is a sentence about the argument of
  // that name.
  bool parse(std::string_view argument, std::string_view text, Case letters, std::string *problem);

  // Is there a match in this line? must_stop is asked every few ten milliseconds at least; when it
  // says so, the answer is no. In a line that takes longer than that, a match must lie within 4 KiB
  // (1 MiB, if the pattern is a small one). Thread: any.
  bool finds(std::string_view line, const std::function<bool()> &must_stop) const;
  const std::string &text() const { return text_; }

 private:
  std::string text_;
  std::size_t window_ = 0;  // bytes that are searched between two looks at must_stop
  std::unique_ptr<re2::RE2> compiled_;
};

}  // namespace tool_kit
