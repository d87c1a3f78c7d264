// Parses an HTML page into a tree, with memory and time limits.
#pragma once

#include <gumbo.h>

#include <atomic>
#include <memory>
#include <string_view>

namespace builtin_http {

// Parsing is aborted if a page exceeds one of these limits.
inline constexpr std::size_t max_tree_bytes = 192u << 20;
inline constexpr unsigned max_parse_ms = 5'000;

class HtmlTree {
 public:
  HtmlTree();
  ~HtmlTree();

  // Parses `html`, which must be UTF-8 and must outlive this object. Returns the root node, or
  // nullptr if a limit is exceeded or the call was cancelled. This object owns all nodes. May be
  // called only once, on any thread.
  const GumboNode *parse(std::string_view html, const std::atomic<bool> &cancelled);

 private:
  class Arena;
  std::unique_ptr<Arena> arena_;
};

// Returns the value of an attribute, or an empty string if it is absent.
std::string_view attribute(const GumboElement &element, const char *name);

// The children of a node. Only elements have children.
struct Children {
  const GumboVector *nodes;
  const GumboNode *operator[](unsigned i) const {
    return static_cast<const GumboNode *>(nodes->data[i]);
  }
  unsigned size() const { return nodes->length; }
};
inline bool is_element(const GumboNode *node) {
  return node->type == GUMBO_NODE_ELEMENT;
}
inline Children children_of(const GumboNode *element) {
  return {&element->v.element.children};
}

}  // namespace builtin_http
