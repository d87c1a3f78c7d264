#pragma once

#include <memory>
#include <span>

#include "ast.hpp"
#include "regex.hpp"

namespace bulkhead::cel {

// Error messages to which Program::explain() adds details. They are compared by address.
inline constexpr char kNoOverload[] = "no such overload for these operand types";
inline constexpr char kNoKey[] = "no such key";
inline constexpr char kNoFields[] = "only maps have fields";

using Regexes = std::vector<std::unique_ptr<const Regex>>;

class Evaluator {
 public:
  Evaluator(const Ast &ast, const Regexes &regexes, Context &context)
      : ast_(ast), regexes_(regexes), context_(context) {}

  // Evaluates a node. Returns its value, or an error together with its position. If the budget is
  // exceeded, context.stopped() is true.
  Value run(NodeId id);

 private:
  Value compute(const Node &node);
  Value operand(const Node &node, std::size_t index) { return run(ast_.links[node.first + index]); }
  Value variable(const Node &node) const;
  Value select(const Node &node, bool only_test);
  Value index(const Node &node);
  Value call(const Node &node);
  Value logic(const Node &node, bool decisive);
  Value conditional(const Node &node);
  Value compare(const Node &node);
  Value in(const Node &node);
  Value make_list(const Node &node);
  Value make_map(const Node &node);
  Value regex(const Node &node);
  Value quantifier(const Node &node, const Value &range, bool decisive);
  Value exists_one(const Node &node, const Value &range);
  Value collect(const Node &node, const Value &range);
  Value macro(const Node &node);

  const Ast &ast_;
  const Regexes &regexes_;
  Context &context_;
};

}  // namespace bulkhead::cel
