#include "builtin-http/html_tree.hpp"

#include <algorithm>
#include <chrono>
#include <csetjmp>
#include <cstdlib>
#include <utility>

namespace builtin_http {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

// Allocates the memory of one parse and frees it in one step. gumbo's own cleanup is not used
// because its recursion is as deep as the page is nested. gumbo does not handle failed allocations
// and has no time limit, so the allocator aborts the parse with longjmp if a limit is exceeded.
// Only gumbo's C code runs between setjmp and longjmp, and it owns no resources except this memory.
class HtmlTree::Arena {
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

HtmlTree::HtmlTree() = default;
HtmlTree::~HtmlTree() = default;

namespace {

// Returns nullptr if the allocator aborted the parse. The stack frame of this function must not
// contain objects with destructors, because longjmp skips them.
const GumboOutput *parse_within(std::jmp_buf *out_of_bounds, const GumboOptions &options,
                                std::string_view html) noexcept {
  if (setjmp(*out_of_bounds) != 0) return nullptr;
  return gumbo_parse_with_options(&options, html.data(), html.size());
}

}  // namespace

const GumboNode *HtmlTree::parse(std::string_view html, const std::atomic<bool> &cancelled) {
  arena_ = std::make_unique<Arena>(cancelled);
  GumboOptions options = kGumboDefaultOptions;
  options.allocator = Arena::allocate;
  options.deallocator = Arena::keep;
  options.userdata = arena_.get();
  options.max_errors = 0;
  const GumboOutput *output = parse_within(&arena_->out_of_bounds, options, html);
  return output == nullptr ? nullptr : output->root;
}

std::string_view attribute(const GumboElement &element, const char *name) {
  const GumboAttribute *a = gumbo_get_attribute(&element.attributes, name);
  return a == nullptr ? std::string_view() : std::string_view(a->value);
}

}  // namespace builtin_http
