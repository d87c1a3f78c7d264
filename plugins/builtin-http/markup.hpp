// Formats text, blocks, lists, quotes and emphasis as Markdown or plain text. Independent of HTML.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace builtin_http {

class MarkupWriter {
 public:
  explicit MarkupWriter(bool markdown) : markdown_(markdown) {}

  // Writes text. Each sequence of white space becomes one space.
  void text(std::string_view t);
  // Writes text without changing its white space, except that a CR at the end of a line is removed.
  void verbatim(std::string_view t);

  // Writes a line unchanged and outside the current emphasis.
  void line(std::string_view t);

  // Makes the following text start on a new line (1) or in a new paragraph (2).
  void block(int lines) { wanted_ = lines > wanted_ ? lines : wanted_; }
  void line_break() { wanted_ = wanted_ == 0 ? 1 : 2; }
  void rule();

  void heading(int level);
  void end_heading() { heading_.clear(); }  // an empty heading is dropped
  void begin_quote() { containers_.push_back({Kind::quote, {}, 0, 0}); }
  void end_quote() { containers_.pop_back(); }
  void begin_list() { containers_.push_back({Kind::bullets, {}, 0, 0}); }
  void begin_list_from(unsigned first) { containers_.push_back({Kind::numbers, {}, first, 0}); }
  void end_list();
  bool in_list() const;
  void item();
  void end_item();  // an empty item is dropped
  // `fence` must have at least three backticks, and more than the longest sequence of backticks in
  // the text.
  void begin_fence(std::string_view fence, std::string_view language);
  void end_fence(std::string_view fence);

  // Marks are emphasis, code and links. `begin` and `end` are their delimiters. Marks must be
  // properly nested. A mark is dropped if it has no text or is inside another mark of its kind.
  // Emphasis is closed at the end of each paragraph and reopened in the next one. A link is closed
  // at the end of its first paragraph and is not reopened.
  void begin_mark(std::string_view begin, std::string_view end);
  void begin_link(std::string_view target) { begin_mark("[", "](" + std::string(target) + ")"); }
  void end_mark();

  // Returns the written text. It ends with a line break unless it is empty.
  std::string take();

 private:
  enum class Kind { quote, bullets, numbers };
  // A quote or list that contains the current line. The outermost container comes first.
  struct Container {
    Kind kind;
    std::string marker;  // marker of an item, until its first line is written
    unsigned number;
    std::size_t width;  // width of the last marker in characters
  };
  struct Mark {
    std::string begin, end;
    bool written = false;  // true after the first text of the mark in this paragraph
    bool ended = false;    // true for a link whose end has been written
  };

  void begin_line();
  std::string front(std::string *rest);
  void put(std::string_view t);
  void write_marks();
  void close_marks();
  bool begins_item() const;

  bool markdown_;
  std::string out_;
  int wanted_ = 0;
  bool list_ended_ = false;  // the next text does not belong to the last item
  bool space_ = false;
  std::size_t no_space_at_ = 0;  // white space is dropped while out_ has this size
  std::string heading_;          // heading marker for the next line
  std::string last_rest_;        // line prefix for the rest of the current paragraph
  std::vector<Container> containers_;
  std::vector<Mark> marks_;    // open marks; each kind occurs at most once
  std::vector<bool> counted_;  // for each begin_mark(): true if it added a mark to marks_
};

}  // namespace builtin_http
