// Searches lines for an untrusted regular expression. With RE2, the time is linear in the length of
// the text, whatever the pattern is.
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

  // Compiles a pattern of at most 4096 bytes, which may use 4 MiB of memory. `argument` is the name
  // of the argument for error messages. On failure, returns false and sets *problem to a message.
  bool parse(std::string_view argument, std::string_view text, Case letters, std::string *problem);

  // Returns true if the line contains a match. must_stop() is called at least every few tens of
  // milliseconds; if it returns true, the search stops and finds no match. If searching a line
  // could take longer than that, the line is searched in overlapping parts, and only matches of up
  // to 4 KiB (1 MiB for small patterns) are certain to be found. Thread-safe.
  bool finds(std::string_view line, const std::function<bool()> &must_stop) const;
  const std::string &text() const { return text_; }

 private:
  std::string text_;
  std::size_t window_ = 0;  // bytes searched between two calls of must_stop
  std::unique_ptr<re2::RE2> compiled_;
};

}  // namespace tool_kit
