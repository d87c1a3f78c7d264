#include "builtin-http/html_text.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "builtin-http/html_names.hpp"
#include "builtin-http/html_tree.hpp"
#include "builtin-http/markup.hpp"
#include "builtin-http/table.hpp"

namespace builtin_http {
namespace {

constexpr unsigned max_span = 1000;  // limit for the columns and rows that a cell spans

// Calls see(node) for each node below `root` in document order. If see() returns false,
// each_below() stops and returns false. Not recursive, because the nesting depth of a page is
// unlimited.
template <class See>
bool each_below(const GumboNode *root, See see) {
  std::vector<std::pair<const GumboNode *, unsigned>> open{{root, 0}};
  while (!open.empty()) {
    auto &[node, next] = open.back();
    if (!is_element(node) || next == children_of(node).size()) {
      open.pop_back();
      continue;
    }
    const GumboNode *child = children_of(node)[next++];
    if (!see(child)) return false;
    open.emplace_back(child, 0);
  }
  return true;
}

// Returns the length of the longest sequence of backticks in the text below `root`.
std::size_t longest_ticks(const GumboNode *root) {
  std::size_t longest = 0;
  each_below(root, [&](const GumboNode *node) {
    if (is_element(node)) return true;
    std::size_t run = 0;
    for (const char *p = node->v.text.text; *p != '\0'; ++p) {
      run = *p == '`' ? run + 1 : 0;
      longest = std::max(longest, run);
    }
    return true;
  });
  return longest;
}

// Returns true if a table contains data (short cells), and false if it is used only for layout.
bool is_data_table(const GumboNode *table) {
  bool several = false;  // more than one column
  const bool flat = each_below(table, [&](const GumboNode *node) {
    if (!is_element(node)) return true;
    const GumboTag tag = node->v.element.tag;
    if (tag == GUMBO_TAG_TR) {
      unsigned cells = 0;
      for (unsigned i = 0; i < children_of(node).size(); ++i) {
        cells += is_element(children_of(node)[i]) ? 1 : 0;
      }
      several = several || cells > 1;
    }
    return tag != GUMBO_TAG_TABLE && tag != GUMBO_TAG_PRE && tag != GUMBO_TAG_UL &&
           tag != GUMBO_TAG_OL && tag != GUMBO_TAG_BLOCKQUOTE && tag != GUMBO_TAG_FORM &&
           !is_heading(tag);
  });
  return flat && several;
}

class Page {
 public:
  Page(bool markdown, const std::atomic<bool> &cancelled)
      : markdown_(markdown), page_(markdown), cancelled_(cancelled) {}

  // Writes the text of a tree. Not recursive, because the nesting depth is unlimited. Returns false
  // if the call was cancelled.
  bool add(const GumboNode *root) {
    std::vector<Frame> open;
    if (!enter(root)) return true;
    open.push_back({root, 0});
    while (!open.empty()) {
      Frame &top = open.back();
      if (top.next == children_of(top.node).size()) {
        leave(top.node);
        open.pop_back();
        if (cancelled_.load(std::memory_order_relaxed)) return false;
        continue;
      }
      const GumboNode *child = children_of(top.node)[top.next++];
      if (enter(child)) open.push_back({child, 0});
    }
    return true;
  }

  std::string take() { return page_.take(); }

 private:
  struct Frame {
    const GumboNode *node;
    unsigned next;
  };

  // Returns the writer for the open table cell, or for the page if no cell is open.
  MarkupWriter &writer() { return cell_ ? *cell_ : page_; }

  // Begins a node. Returns true if the caller must process its children and then call leave().
  bool enter(const GumboNode *node) {
    switch (node->type) {
      case GUMBO_NODE_TEXT:
      case GUMBO_NODE_CDATA:
      case GUMBO_NODE_WHITESPACE:
        add_text(node->v.text.text);
        return false;
      case GUMBO_NODE_ELEMENT:
        return begin(node);
      default:
        return false;
    }
  }

  // Returns true inside code, where Markdown delimiters would have no effect.
  bool in_code() const { return !fences_.empty() || codes_ > 0; }

  void add_text(const char *text) {
    if (!fences_.empty()) {
      page_.verbatim(text);
    } else if (!table_ || cell_) {  // text between table cells is dropped
      writer().text(text);
    }
  }

  bool begin(const GumboNode *node);
  bool begin_inline(const GumboNode *node);
  void begin_list(const GumboElement &e);
  void begin_pre(const GumboNode *node);
  bool begin_in_table(const GumboElement &e);
  void leave(const GumboNode *node);
  void leave_inline(const GumboElement &e);
  bool leave_in_table(const GumboElement &e);
  void write_table();

  const bool markdown_;
  MarkupWriter page_;
  const std::atomic<bool> &cancelled_;
  std::vector<std::string> fences_;  // fences of open <pre> elements; only the first is written
  unsigned codes_ = 0;               // number of open <code> elements
  std::vector<bool> marked_;         // for each open inline element: true if a mark was written
  const GumboElement *table_element_ = nullptr;
  std::unique_ptr<Table> table_;        // the open data table
  std::unique_ptr<MarkupWriter> cell_;  // the open cell of table_
};

bool Page::begin(const GumboNode *node) {
  const GumboElement &e = node->v.element;
  if (is_hidden(e)) return false;
  if (table_ && begin_in_table(e)) return true;
  writer().block(apart(e.tag));
  if (is_heading(e.tag)) {
    writer().heading(e.tag - GUMBO_TAG_H1 + 1);
    return true;
  }
  switch (e.tag) {
    case GUMBO_TAG_BR:
      writer().line_break();
      return false;
    case GUMBO_TAG_HR:
      writer().rule();
      return false;
    case GUMBO_TAG_IMG:
      writer().text(attribute(e, "alt"));
      return false;
    case GUMBO_TAG_BLOCKQUOTE:
      writer().begin_quote();
      return true;
    case GUMBO_TAG_PRE:
      begin_pre(node);
      return true;
    case GUMBO_TAG_UL:
    case GUMBO_TAG_OL:
      begin_list(e);
      return true;
    case GUMBO_TAG_LI:
      writer().item();
      return true;
    case GUMBO_TAG_TABLE:
      if (fences_.empty() && is_data_table(node)) {
        table_element_ = &e;
        table_ = std::make_unique<Table>();
      }
      return true;
    default:
      return begin_inline(node);
  }
}

void Page::begin_list(const GumboElement &e) {
  writer().block(writer().in_list() ? 1 : 2);
  if (e.tag == GUMBO_TAG_UL) return writer().begin_list();
  writer().begin_list_from(number_of(attribute(e, "start"), 1'000'000'000));
}

void Page::begin_pre(const GumboNode *node) {
  std::string_view language = language_of(attribute(node->v.element, "class"));
  for (unsigned i = 0; language.empty() && i < children_of(node).size(); ++i) {
    const GumboNode *child = children_of(node)[i];
    if (is_element(child)) language = language_of(attribute(child->v.element, "class"));
  }
  const bool outermost = fences_.empty();
  fences_.emplace_back(outermost ? std::max<std::size_t>(longest_ticks(node) + 1, 3) : 0, '`');
  if (outermost) page_.begin_fence(fences_.front(), language);
}

bool Page::begin_inline(const GumboNode *node) {
  const GumboElement &e = node->v.element;
  std::string_view mark = mark_of(e.tag);
  if (e.tag == GUMBO_TAG_A) {
    const std::string target = link_target(attribute(e, "href"));
    marked_.push_back(!in_code() && !target.empty());
    if (marked_.back()) writer().begin_link(target);
  } else if (is_code(e.tag)) {
    marked_.push_back(!in_code());
    const bool ticks = marked_.back() && longest_ticks(node) > 0;
    if (marked_.back()) writer().begin_mark(ticks ? "`` " : "`", ticks ? " ``" : "`");
    ++codes_;
  } else if (!mark.empty()) {
    marked_.push_back(!in_code());
    if (marked_.back()) writer().begin_mark(mark, mark);
  }
  return true;
}

// Returns true if the element is a row, cell or caption of the open table.
bool Page::begin_in_table(const GumboElement &e) {
  if (e.tag == GUMBO_TAG_TR) {
    table_->begin_row();
  } else if (e.tag == GUMBO_TAG_TD || e.tag == GUMBO_TAG_TH || e.tag == GUMBO_TAG_CAPTION) {
    cell_ = std::make_unique<MarkupWriter>(markdown_);
  } else {
    return false;
  }
  return true;
}

void Page::leave(const GumboNode *node) {
  const GumboElement &e = node->v.element;
  if (table_ && leave_in_table(e)) return;
  switch (e.tag) {
    case GUMBO_TAG_BLOCKQUOTE:
      writer().end_quote();
      break;
    case GUMBO_TAG_PRE:
      if (fences_.size() == 1) page_.end_fence(fences_.front());
      fences_.pop_back();
      break;
    case GUMBO_TAG_UL:
    case GUMBO_TAG_OL:
      writer().end_list();
      writer().block(writer().in_list() ? 1 : 2);
      break;
    case GUMBO_TAG_LI:
      writer().end_item();
      break;
    default:
      leave_inline(e);
  }
  if (is_heading(e.tag)) {
    writer().end_heading();
    writer().block(2);
  }
  writer().block(apart(e.tag));
}

void Page::leave_inline(const GumboElement &e) {
  if (e.tag != GUMBO_TAG_A && !is_code(e.tag) && mark_of(e.tag).empty()) return;
  if (is_code(e.tag)) --codes_;
  if (marked_.back()) writer().end_mark();
  marked_.pop_back();
}

// Returns true if the element is the open table or one of its rows, cells or captions.
bool Page::leave_in_table(const GumboElement &e) {
  if (&e == table_element_) {
    write_table();
    return true;
  }
  if (e.tag == GUMBO_TAG_TR) return true;
  const bool cell = e.tag == GUMBO_TAG_TD || e.tag == GUMBO_TAG_TH;
  if (!cell && e.tag != GUMBO_TAG_CAPTION) return false;
  std::string text = cell_->take();
  cell_.reset();
  if (!text.empty()) text.pop_back();  // removes the final line break
  if (cell) {
    table_->cell(std::move(text), number_of(attribute(e, "colspan"), max_span),
                 number_of(attribute(e, "rowspan"), max_span));
  } else {
    page_.verbatim(text);
    page_.block(2);
  }
  return true;
}

void Page::write_table() {
  page_.block(2);
  for (const std::string &line : table_->lines(markdown_)) page_.line(line);
  page_.block(2);
  table_.reset();
  table_element_ = nullptr;
}

const GumboNode *body_of(const GumboNode *html) {
  for (unsigned i = 0; i < children_of(html).size(); ++i) {
    const GumboNode *child = children_of(html)[i];
    if (is_element(child) && child->v.element.tag == GUMBO_TAG_BODY) return child;
  }
  return html;
}

}  // namespace

bool html_to_text(std::string_view html, bool markdown, const std::atomic<bool> &cancelled,
                  std::string *out, std::string *problem) {
  HtmlTree tree;
  const GumboNode *root = tree.parse(html, cancelled);
  Page page(markdown, cancelled);
  if (root == nullptr || !page.add(body_of(root))) {
    *problem = cancelled.load() ? "the call was cancelled" : "the page is too complex to convert";
    return false;
  }
  *out = page.take();
  return true;
}

}  // namespace builtin_http
