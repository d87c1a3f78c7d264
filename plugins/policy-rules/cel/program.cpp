#include "program.hpp"

#include <algorithm>
#include <optional>

#include "checker.hpp"
#include "parser.hpp"

namespace bulkhead::cel {
namespace {

std::optional<std::vector<std::string_view>> texts_of(const Value &value) {
  std::vector<std::string_view> texts;
  if (value.is(Kind::kString)) return std::vector<std::string_view>{value.text()};
  if (!value.is(Kind::kList)) return std::nullopt;
  for (std::size_t i = 0; i < value.list_size(); ++i) {
    const Value item = value.at(i);
    if (!item.is(Kind::kString)) return std::nullopt;
    texts.push_back(item.text());
  }
  return texts;
}

std::optional<Program::Demand> prefix_of(const Ast &ast, const Node &node) {
  if (!node.member || node.count != 2 || node.name != "startsWith") return std::nullopt;
  const Node &variable = ast.nodes[ast.links[node.first]];
  const Node &constant = ast.nodes[ast.links[node.first + 1]];
  const bool text = constant.op == Op::kConstant && constant.value.is(Kind::kString);
  if (variable.op != Op::kVariable || !text) return std::nullopt;
  return Program::Demand{variable.slot, {constant.value.text()}, true};
}

std::optional<Program::Demand> demand_of(const Ast &ast, const Node &node) {
  if (node.op == Op::kCall) return prefix_of(ast, node);
  if (node.op != Op::kEqual && node.op != Op::kIn) return std::nullopt;
  const Node *variable = &ast.nodes[ast.links[node.first]];
  const Node *constant = &ast.nodes[ast.links[node.first + 1]];
  if (node.op == Op::kEqual && variable->op == Op::kConstant) std::swap(variable, constant);
  if (variable->op != Op::kVariable || constant->op != Op::kConstant) return std::nullopt;
  if (constant->value.is(Kind::kString) != (node.op == Op::kEqual)) return std::nullopt;
  auto texts = texts_of(constant->value);
  if (!texts) return std::nullopt;
  return Program::Demand{variable->slot, std::move(*texts), false};
}

// The recursion depth is limited by Ast::kMaxHeight.
void collect_demands(const Ast &ast, NodeId id, std::vector<Program::Demand> *out) {
  const Node &node = ast.nodes[id];
  if (node.op == Op::kAnd) {
    for (const NodeId operand : ast.operands(node)) collect_demands(ast, operand, out);
  } else if (auto demand = demand_of(ast, node)) {
    out->push_back(std::move(*demand));
  }
}

void collect_reads(const Ast &ast, NodeId id, std::uint64_t *out) {
  const Node &node = ast.nodes[id];
  if (node.op == Op::kVariable || node.op == Op::kHasVariable) {
    *out |= std::uint64_t{1} << std::min<std::uint32_t>(node.slot, 63);
    return;
  }
  for (const NodeId operand : ast.operands(node)) collect_reads(ast, operand, out);
}

}  // namespace

std::expected<Program, Fault> Program::compile(std::string_view source,
                                               const Environment &environment, bool must_be_bool) {
  Program program;
  if (auto fault = parse(source, &program.ast_)) return std::unexpected(std::move(*fault));
  auto type = check(source, environment, &program.ast_, &program.regexes_);
  if (!type) return std::unexpected(std::move(type.error()));
  if (must_be_bool && !type->is_dyn() && !type->is(Kind::kBool)) {
    return std::unexpected(
        fault_at(source, 0, "a condition must be a bool, not " + type->to_string()));
  }
  program.source_ = source;
  program.type_ = std::move(*type);
  return program;
}

Value Program::evaluate(std::span<const Value> variables, Scratch &scratch,
                        std::uint64_t budget) const {
  scratch.reset();
  Context context(scratch, budget, variables);
  Value value = Evaluator(ast_, regexes_, context).run(ast_.root);
  if (!context.stopped()) return value;
  Value stopped = Value::error(context.why());
  stopped.set_error_place(value.is_error() ? value.error_place() : 0);
  return stopped;
}

std::uint64_t Program::reads() const {
  std::uint64_t out = 0;
  collect_reads(ast_, ast_.root, &out);
  return out;
}

std::vector<Program::Demand> Program::demands() const {
  std::vector<Demand> out;
  collect_demands(ast_, ast_.root, &out);
  return out;
}

}  // namespace bulkhead::cel
