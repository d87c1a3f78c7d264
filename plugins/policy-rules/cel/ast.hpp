// Defines the syntax tree of an expression. The parser builds the tree, the checker resolves names
// and overloads, and the evaluator computes the value.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "context.hpp"
#include "value.hpp"

namespace bulkhead::cel {

struct Overload;

enum class Op : std::uint8_t {
  kConstant,     // value
  kName,         // name; the checker replaces it with a variable, a local or a constant
  kVariable,     // slot: index in the environment
  kLocal,        // slot: index in Context::locals
  kSelect,       // operand.name
  kHas,          // has(operand.name)
  kHasVariable,  // has(VARIABLE); slot: index in the environment
  kIndex,
  kCall,     // name(operands); if `member` is set, operand 0 is the receiver
  kMatches,  // slot: index of the compiled regular expression
  kAnd,      // two or more operands
  kOr,
  kNot,
  kConditional,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kList,
  kMap,  // key, value, key, value ...
  kAll,  // macros: operands are range and predicate; name and slot are the variable
  kExists,
  kExistsOne,
  kFilter,
  kTransform,  // map(): operands are range and transform, or range, predicate and transform
};

using NodeId = std::uint32_t;

struct Node {
  Op op = Op::kConstant;
  bool member = false;         // the call has a receiver
  bool absolute = false;       // the name starts with a dot
  std::uint32_t position = 0;  // byte offset in the source
  std::uint32_t first = 0;     // operands are Ast::links[first, first + count)
  std::uint32_t count = 0;
  std::uint32_t slot = 0;
  std::uint32_t height = 1;  // height of the subtree; 1 for a leaf
  std::string_view name;     // in Ast::arena, or a string literal
  Value value;
  // The overload that matches the static operand types. If several match, all overloads of `name`.
  std::span<const Overload> overloads;
};

struct Ast {
  static constexpr std::size_t kMaxText = std::size_t{64} << 10;
  static constexpr std::size_t kMaxNodes = 16384;
  static constexpr std::uint32_t kMaxHeight = 200;

  std::vector<Node> nodes;
  std::vector<NodeId> links;
  NodeId root = 0;
  Arena arena{std::size_t{4} << 20};  // owns the names and the constants

  std::span<const NodeId> operands(const Node &node) const {
    return {links.data() + node.first, node.count};
  }
};

}  // namespace bulkhead::cel
