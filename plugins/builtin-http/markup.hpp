// Writes text with blocks, lists, quotes and emphasis as Markdown or plain text. Does not depend on
// HTML.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace builtin_http {

class MarkupWriter {
 public:
  explicit MarkupWriter(bool markdown) : markdown_(markdown) {}

  // Writes text with runs of white space collapsed to one space.
  void text(std::string_view t);
  // Writes text unchanged, including line breaks.
  void verbatim(std::string_view t);

  // Writes one line unchanged, without the current emphasis.
  void line(std::string_view t);

  // Makes the following text start a new line (1) or a new paragraph (2).
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
  // `fence` has at least three backticks, and more than any run of backticks in the fenced text.
  void begin_fence(std::string_view fence, std::string_view language);
  void end_fence(std::string_view fence);

  // Emphasis, code and links, delimited by `begin` and `end`. Marks must be properly nested. A mark
  // is dropped if it has no text or is inside a mark of the same kind. Emphasis is repeated in each
  // additional paragraph; a link ends with its first paragraph.
  void begin_mark(std::string_view begin, std::string_view end);
  void begin_link(std::string_view target) { begin_mark("[", "](" + std::string(target) + ")"); }
  void end_mark();

  // Returns the text, which ends with a line break unless it is empty.
  std::string take();

 private:
  enum class Kind { quote, bullets, numbers };
  // A container of the current line. Containers are stored outermost first.
  struct Container {
    Kind kind;
    std::string marker;  // an item's marker, until the item's first line is written
    unsigned number;
    std::size_t width;  // width of the last marker
  };
  struct Mark {
    std::string begin, end;
    bool written = false;  // the mark is written together with its first text
    bool ended = false;    // the end of a link has been written
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
  bool list_ended_ = false;  // the next text is outside the last item
  bool space_ = false;
  std::size_t no_space_at_ = 0;  // leading white space is dropped while out_ has this size
  std::string heading_;          // marker for the next line
  std::string last_rest_;        // prefix for the following lines of the current paragraph
  std::vector<Container> containers_;
  std::vector<Mark> marks_;    // open marks; each kind occurs at most once
  std::vector<bool> counted_;  // for each begin_mark(): true if the mark is in marks_
};

}  // namespace builtin_http
