#include "builtin-http/html_text.hpp"

#include <gumbo.h>

#include <algorithm>
#include <chrono>
#include <csetjmp>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "builtin-http/markup.hpp"

namespace builtin_http {
namespace {

using Clock = std::chrono::steady_clock;

// All memory of one parse. It is given back at once: gumbo's own way recurses as deep as the page
// is nested. Nor does gumbo take a failed allocation or a time limit; so the allocator leaves the
// parse by longjmp when a bound is reached. Between setjmp and longjmp there is only gumbo's C
// code, which holds nothing but this memory.
class Arena {
 public:
  explicit Arena(const std::atomic<bool> &cancelled)
      : cancelled_(cancelled), deadline_(Clock::now() + std::chrono::milliseconds(max_parse_ms)) {}
  ~Arena() {
    while (blocks_ != nullptr) std::free(std::exchange(blocks_, blocks_->next));
  }
  Arena(const Arena &) = delete;
  Arena &operator=(const Arena &) = delete;

  std::jmp_buf out_of_bounds;

  static void *allocate(void *self, std::size_t n) noexcept {
    return static_cast<Arena *>(self)->take(n);
  }
  static void keep(void *, void *) noexcept {}

 private:
  struct Block {
    Block *next;
    std::size_t bytes;
  };
  static constexpr std::size_t unit = 16;
  static constexpr std::size_t block_bytes = 256u << 10;

  void *take(std::size_t n) noexcept {
    n = (n + unit - 1) / unit * unit;
    const bool look = ++calls_ % 256 == 0;
    if (n > max_tree_bytes ||
        (look && (cancelled_.load(std::memory_order_relaxed) || Clock::now() > deadline_))) {
      std::longjmp(out_of_bounds, 1);
    }
    if (n > left_) add_block(n);
    void *p = next_;
    next_ += n;
    left_ -= n;
    return p;
  }

  void add_block(std::size_t n) noexcept {
    const std::size_t bytes = std::max(n + unit, block_bytes);
    total_ += bytes;
    auto *block = total_ > max_tree_bytes ? nullptr : static_cast<Block *>(std::malloc(bytes));
    if (block == nullptr) std::longjmp(out_of_bounds, 1);
    *block = {blocks_, bytes};
    blocks_ = block;
    next_ = reinterpret_cast<char *>(block) + unit;
    left_ = bytes - unit;
  }

  const std::atomic<bool> &cancelled_;
  const Clock::time_point deadline_;
  Block *blocks_ = nullptr;
  char *next_ = nullptr;
  std::size_t left_ = 0;
  std::size_t total_ = 0;
  std::size_t calls_ = 0;
};

// nullptr: a bound was reached.
const GumboOutput *parse(Arena *arena, std::string_view html) noexcept {
  GumboOptions options = kGumboDefaultOptions;
  options.allocator = Arena::allocate;
  options.deallocator = Arena::keep;
  options.userdata = arena;
  options.max_errors = 0;
  if (setjmp(arena->out_of_bounds) != 0) return nullptr;
  return gumbo_parse_with_options(&options, html.data(), html.size());
}

std::string_view attribute(const GumboElement &element, const char *name) {
  const GumboAttribute *a = gumbo_get_attribute(&element.attributes, name);
  return a == nullptr ? std::string_view() : std::string_view(a->value);
}

// How a link's address stands in Markdown; empty: not worth one.
std::string link_target(std::string_view href) {
  constexpr std::size_t max_href = 2000;
  while (!href.empty() && static_cast<signed char>(href.front()) <= ' ') href.remove_prefix(1);
  while (!href.empty() && static_cast<signed char>(href.back()) <= ' ') href.remove_suffix(1);
  std::string start(href.substr(0, 11));
  for (char &c : start) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  if (href.size() > max_href || start.starts_with("javascript:") || start.starts_with("data:")) {
    return {};
  }
  static constexpr char hex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : href) {
    const auto b = static_cast<unsigned char>(c);
    if (b <= ' ' || c == '(' || c == ')' || c == '<' || c == '>') {
      out += {'%', hex[b >> 4], hex[b & 15]};
    } else {
      out += c;
    }
  }
  return out;
}

class Page {
 public:
  Page(bool markdown, const std::atomic<bool> &cancelled)
      : writer_(markdown), cancelled_(cancelled) {}

  // Iterative: a page may be nested a million levels deep. False: cancelled.
  bool add(const GumboNode *root) {
    std::vector<Frame> open;
    if (!enter(root)) return true;
    open.push_back({root, 0});
    while (!open.empty()) {
      Frame &top = open.back();
      const GumboVector &children = top.node->v.element.children;
      if (top.next == children.length) {
        leave(top.node->v.element);
        open.pop_back();
        if (cancelled_.load(std::memory_order_relaxed)) return false;
        continue;
      }
      const auto *child = static_cast<const GumboNode *>(children.data[top.next++]);
      if (enter(child)) open.push_back({child, 0});
    }
    return true;
  }

  std::string take() { return writer_.take(); }

 private:
  struct Frame {
    const GumboNode *node;
    unsigned next;
  };

  // True: an element whose children come next, and then leave().
  bool enter(const GumboNode *node) {
    switch (node->type) {
      case GUMBO_NODE_TEXT:
      case GUMBO_NODE_CDATA:
      case GUMBO_NODE_WHITESPACE:
        add_text(node->v.text.text);
        return false;
      case GUMBO_NODE_ELEMENT:
        return begin(node->v.element);
      default:
        return false;
    }
  }

  void add_text(const char *text) {
    if (pre_ > 0) {
      writer_.verbatim(text);
    } else {
      writer_.text(text);
    }
  }

  bool begin(const GumboElement &e);
  void leave(const GumboElement &e);
  void begin_pre() {
    if (pre_++ == 0) writer_.begin_fence();
  }

  MarkupWriter writer_;
  const std::atomic<bool> &cancelled_;
  unsigned pre_ = 0;
  std::vector<std::string> links_;  // of the open <a>, innermost last
};

// Lines that an element stands apart from the others by: 0 inline, 1 block, 2 paragraph.
int apart(GumboTag tag) {
  switch (tag) {
    case GUMBO_TAG_P:
    case GUMBO_TAG_BLOCKQUOTE:
    case GUMBO_TAG_TABLE:
    case GUMBO_TAG_DL:
    case GUMBO_TAG_FIGURE:
      return 2;
    case GUMBO_TAG_ADDRESS:
    case GUMBO_TAG_ARTICLE:
    case GUMBO_TAG_ASIDE:
    case GUMBO_TAG_BODY:
    case GUMBO_TAG_CAPTION:
    case GUMBO_TAG_CENTER:
    case GUMBO_TAG_DD:
    case GUMBO_TAG_DETAILS:
    case GUMBO_TAG_DIV:
    case GUMBO_TAG_DT:
    case GUMBO_TAG_FIELDSET:
    case GUMBO_TAG_FIGCAPTION:
    case GUMBO_TAG_FOOTER:
    case GUMBO_TAG_FORM:
    case GUMBO_TAG_HEADER:
    case GUMBO_TAG_HGROUP:
    case GUMBO_TAG_MAIN:
    case GUMBO_TAG_NAV:
    case GUMBO_TAG_OPTION:
    case GUMBO_TAG_SECTION:
    case GUMBO_TAG_SUMMARY:
    case GUMBO_TAG_TR:
      return 1;
    default:
      return 0;
  }
}

std::string_view mark_of(GumboTag tag) {
  switch (tag) {
    case GUMBO_TAG_STRONG:
    case GUMBO_TAG_B:
      return "**";
    case GUMBO_TAG_EM:
    case GUMBO_TAG_I:
      return "*";
    case GUMBO_TAG_CODE:
    case GUMBO_TAG_KBD:
    case GUMBO_TAG_SAMP:
      return "`";
    default:
      return {};
  }
}

bool Page::begin(const GumboElement &e) {
  writer_.block(apart(e.tag));
  switch (e.tag) {
    case GUMBO_TAG_SCRIPT:
    case GUMBO_TAG_STYLE:
    case GUMBO_TAG_NOSCRIPT:
    case GUMBO_TAG_SVG:
    case GUMBO_TAG_TEMPLATE:
    case GUMBO_TAG_IFRAME:
      return false;
    case GUMBO_TAG_BR:
      writer_.line_break();
      return false;
    case GUMBO_TAG_HR:
      writer_.rule();
      return false;
    case GUMBO_TAG_IMG:
      writer_.text(attribute(e, "alt"));
      return false;
    case GUMBO_TAG_H1:
    case GUMBO_TAG_H2:
    case GUMBO_TAG_H3:
    case GUMBO_TAG_H4:
    case GUMBO_TAG_H5:
    case GUMBO_TAG_H6:
      writer_.heading(e.tag - GUMBO_TAG_H1 + 1);
      return true;
    case GUMBO_TAG_BLOCKQUOTE:
      writer_.begin_quote();
      return true;
    case GUMBO_TAG_PRE:
      begin_pre();
      return true;
    case GUMBO_TAG_UL:
    case GUMBO_TAG_OL:
      writer_.block(writer_.in_list() ? 1 : 2);
      writer_.begin_list(e.tag == GUMBO_TAG_OL);
      return true;
    case GUMBO_TAG_LI:
      writer_.item();
      return true;
    case GUMBO_TAG_TD:
    case GUMBO_TAG_TH:
      writer_.cell();
      return true;
    case GUMBO_TAG_A:
      links_.push_back(pre_ > 0 ? std::string() : link_target(attribute(e, "href")));
      if (!links_.back().empty()) writer_.begin_mark("[");
      return true;
    default:
      if (pre_ == 0 && !mark_of(e.tag).empty()) writer_.begin_mark(mark_of(e.tag));
      return true;
  }
}

void Page::leave(const GumboElement &e) {
  switch (e.tag) {
    case GUMBO_TAG_H1:
    case GUMBO_TAG_H2:
    case GUMBO_TAG_H3:
    case GUMBO_TAG_H4:
    case GUMBO_TAG_H5:
    case GUMBO_TAG_H6:
      writer_.end_front();
      writer_.block(2);
      break;
    case GUMBO_TAG_BLOCKQUOTE:
      writer_.end_quote();
      break;
    case GUMBO_TAG_PRE:
      if (--pre_ == 0) writer_.end_fence();
      break;
    case GUMBO_TAG_UL:
    case GUMBO_TAG_OL:
      writer_.end_list();
      writer_.block(writer_.in_list() ? 1 : 2);
      break;
    case GUMBO_TAG_LI:
      writer_.end_front();
      writer_.block(1);
      break;
    case GUMBO_TAG_A:
      if (!links_.back().empty()) writer_.end_mark("](" + links_.back() + ")");
      links_.pop_back();
      break;
    default:
      if (pre_ == 0 && !mark_of(e.tag).empty()) writer_.end_mark(mark_of(e.tag));
  }
  writer_.block(apart(e.tag));
}

const GumboNode *body_of(const GumboNode *html) {
  const GumboVector &children = html->v.element.children;
  for (unsigned i = 0; i < children.length; ++i) {
    const auto *child = static_cast<const GumboNode *>(children.data[i]);
    if (child->type == GUMBO_NODE_ELEMENT && child->v.element.tag == GUMBO_TAG_BODY) return child;
  }
  return html;
}

}  // namespace

bool html_to_text(std::string_view html, bool markdown, const std::atomic<bool> &cancelled,
                  std::string *out, std::string *problem) {
  const auto arena = std::make_unique<Arena>(cancelled);
  const GumboOutput *tree = parse(arena.get(), html);
  Page page(markdown, cancelled);
  if (tree == nullptr || !page.add(body_of(tree->root))) {
    *problem = cancelled.load() ? "the call was cancelled" : "the page is too complex to be read";
    return false;
  }
  *out = page.take();
  return true;
}

}  // namespace builtin_http
