// Writes text with its blocks, lists, quotes and emphasis, as Markdown or plain. Knows no HTML.
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

  // One line as it is, without the emphasis that it is in.
  void line(std::string_view t);

  // What follows begins a new line (1) or a new paragraph (2).
  void block(int lines) { wanted_ = lines > wanted_ ? lines : wanted_; }
  void line_break() { wanted_ = wanted_ == 0 ? 1 : 2; }
  void rule();

  void heading(int level);
  void end_heading() { heading_.clear(); }  // nothing is left of an empty one
  void begin_quote() { containers_.push_back({Kind::quote, {}, 0, 0}); }
  void end_quote() { containers_.pop_back(); }
  void begin_list() { containers_.push_back({Kind::bullets, {}, 0, 0}); }
  void begin_list_from(unsigned first) { containers_.push_back({Kind::numbers, {}, first, 0}); }
  void end_list();
  bool in_list() const;
  void item();
  void end_item();  // nothing is left of an empty one
  // fence: at least three backticks, more than any run in what follows.
  void begin_fence(std::string_view fence, std::string_view language);
  void end_fence(std::string_view fence);

  // Emphasis and code, between `begin` and `end`, and links; nested properly. Nothing is left of
  // one without text, nor of one inside another of its kind. In a further paragraph emphasis begins
  // again; a link ends with its first one.
  void begin_mark(std::string_view begin, std::string_view end);
  void begin_link(std::string_view target) { begin_mark("[", "](" + std::string(target) + ")"); }
  void end_mark();

  // The text; ends with a line break unless it is empty.
  std::string take();

 private:
  enum class Kind { quote, bullets, numbers };
  // What lines are inside of, outermost first.
  struct Container {
    Kind kind;
    std::string marker;  // of an item whose first line has not come yet
    unsigned number;
    std::size_t width;  // of the last marker
  };
  struct Mark {
    std::string begin, end;
    bool written = false;  // else it waits for the first text within
    bool ended = false;    // a link whose end has been written
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
  bool list_ended_ = false;  // what follows is not of its last item
  bool space_ = false;
  std::size_t no_space_at_ = 0;  // white space is dropped while out_ has this size
  std::string heading_;          // the marker that the next line begins with
  std::string last_rest_;        // what a further line of the last one's paragraph begins with
  std::vector<Container> containers_;
  std::vector<Mark> marks_;    // that are open; each kind once, so a handful
  std::vector<bool> counted_;  // of each begin_mark(): is it in marks_?
};

}  // namespace builtin_http
