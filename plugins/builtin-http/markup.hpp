// Writes text with its blocks, lists and emphasis, as Markdown or plain. Knows no HTML.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace builtin_http {

class MarkupWriter {
 public:
  explicit MarkupWriter(bool markdown) : markdown_(markdown) {}

  // Text in which runs of white space count as one space.
  void text(std::string_view t);
  // Text as it is, line breaks included.
  void verbatim(std::string_view t);

  // What follows begins a new line (1) or a new paragraph (2).
  void block(int lines) { wanted_ = lines > wanted_ ? lines : wanted_; }
  void line_break() { wanted_ = wanted_ == 0 ? 1 : 2; }
  void rule();

  void heading(int level);
  void end_front() { pending_.clear(); }  // of a heading or item: nothing is left of an empty one
  void begin_quote() { ++quotes_; }
  void end_quote() { --quotes_; }
  void begin_list(bool ordered) { lists_.push_back({ordered, 0}); }
  void end_list() { lists_.pop_back(); }
  bool in_list() const { return !lists_.empty(); }
  void item();
  void cell();  // a further cell in a row
  void begin_fence();
  void end_fence();

  // Emphasis, code and links, nested properly; `mark` must live as long as this. Nothing is left of
  // one without text, nor of one inside another of its kind.
  void begin_mark(std::string_view mark);
  void end_mark(std::string_view mark);

  // The text; ends with a line break unless it is empty.
  std::string take();

 private:
  struct List {
    bool ordered;
    unsigned number;
  };
  struct Mark {
    std::string_view text;
    bool written;  // false: it waits for the first text within
  };

  void begin_line();
  void put(std::string_view t);
  void write_marks();

  const bool markdown_;
  std::string out_;
  int wanted_ = 0;
  bool space_ = false;
  std::size_t no_space_at_ = 0;  // white space is dropped while out_ has this size
  std::string pending_;          // the marker that the next line begins with
  int quotes_ = 0;
  std::vector<List> lists_;
  std::vector<Mark> marks_;    // that are open; each kind once, so a handful
  std::vector<bool> counted_;  // of each begin_mark(): is it in marks_?
};

}  // namespace builtin_http
