#include "guards.hpp"

#include <algorithm>
#include <set>
#include <string_view>

#include "bulkhead/cpp/text.hpp"

namespace bulkhead::cel {
namespace {

bool is_identifier(std::string_view key) {
  const auto letter = [](char c) { return bh::is_letter(c) || c == '_'; };
  return !key.empty() && letter(key.front()) &&
         std::all_of(key.begin(), key.end(), [&](char c) { return letter(c) || bh::is_digit(c); });
}

// One step in a path of members: the path up to and including this step, and the expression that
// tests whether the step exists.
struct Part {
  std::string path, test;
};

Part member_of(const std::string &path, std::string_view key) {
  if (is_identifier(key)) {
    const std::string whole = path + "." + std::string(key);
    return {whole, "has(" + whole + ")"};
  }
  std::string quoted = "\"";
  for (const char c : key) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  quoted += '"';
  return {path + "[" + quoted + "]", quoted + " in " + path};
}

using Facts = std::set<std::string>;  // paths that exist

class Finder {
 public:
  Finder(const Ast &ast, const Environment &environment, std::uint64_t may_be_absent)
      : ast_(ast), environment_(environment), may_be_absent_(may_be_absent) {}

  // The recursion depth is limited by Ast::kMaxHeight.
  void walk(NodeId id, const Facts &facts) {
    const Node &node = ast_.nodes[id];
    switch (node.op) {
      case Op::kVariable:
      case Op::kSelect:
      case Op::kIndex:
        if (const std::vector<Part> parts = parts_of(id); !parts.empty()) {
          return report(parts, facts);
        }
        break;
      case Op::kHasVariable:
        return;
      case Op::kAnd:
      case Op::kOr: {
        Facts inner = facts;
        collect(id, node.op == Op::kAnd, &inner);
        return walk_operands(node, inner);
      }
      case Op::kConditional: {
        const auto operands = ast_.operands(node);
        walk(operands[0], facts);
        for (const bool value : {true, false}) {
          Facts inner = facts;
          collect(operands[0], value, &inner);
          walk(operands[value ? 1 : 2], inner);
        }
        return;
      }
      default:
        break;
    }
    walk_operands(node, facts);
  }

  std::vector<UnguardedRead> take() { return std::move(found_); }

 private:
  void walk_operands(const Node &node, const Facts &facts) {
    for (const NodeId operand : ast_.operands(node)) walk(operand, facts);
  }

  // Returns the steps of a path such as a.b["c"]. If the node is not a path, the result is empty.
  std::vector<Part> parts_of(NodeId id) const {
    const Node &node = ast_.nodes[id];
    if (node.op == Op::kVariable) {
      const std::string &name = environment_.variables()[node.slot].name;
      const bool optional = node.slot < 64 && (may_be_absent_ >> node.slot & 1) != 0;
      return {{name, optional ? "has(" + name + ")" : ""}};
    }
    if (node.op != Op::kSelect && node.op != Op::kIndex) return {};
    std::string_view key = node.name;
    if (node.op == Op::kIndex) {
      const Node &index = ast_.nodes[ast_.operands(node)[1]];
      if (index.op != Op::kConstant || !index.value.is(Kind::kString)) return {};
      key = index.value.text();
    }
    std::vector<Part> parts = parts_of(ast_.operands(node)[0]);
    if (!parts.empty()) parts.push_back(member_of(parts.back().path, key));
    return parts;
  }

  // Adds the paths that are known to exist if the node evaluates to `value`.
  void collect(NodeId id, bool value, Facts *facts) const {
    const Node &node = ast_.nodes[id];
    switch (node.op) {
      case Op::kNot:
        return collect(ast_.operands(node)[0], !value, facts);
      case Op::kAnd:
      case Op::kOr:
        if (value != (node.op == Op::kAnd)) return;
        for (const NodeId operand : ast_.operands(node)) collect(operand, value, facts);
        return;
      case Op::kHasVariable:
        if (value) facts->insert(environment_.variables()[node.slot].name);
        return;
      case Op::kHas:
        if (value) insert(ast_.operands(node)[0], node.name, facts);
        return;
      case Op::kIn: {
        const Node &key = ast_.nodes[ast_.operands(node)[0]];
        if (value && key.op == Op::kConstant && key.value.is(Kind::kString)) {
          insert(ast_.operands(node)[1], key.value.text(), facts);
        }
        return;
      }
      default:
        return;
    }
  }
  void insert(NodeId object, std::string_view key, Facts *facts) const {
    std::vector<Part> parts = parts_of(object);
    if (parts.empty()) return;
    parts.push_back(member_of(parts.back().path, key));
    facts->insert(std::move(parts.back().path));
  }

  void report(const std::vector<Part> &parts, const Facts &facts) {
    std::string test;
    for (const Part &part : parts) {
      if (part.test.empty() || facts.contains(part.path)) continue;
      test += (test.empty() ? "" : " && ") + part.test;
    }
    if (test.empty() || !known_.insert(test).second) return;
    found_.push_back({parts.back().path, std::move(test)});
  }

  const Ast &ast_;
  const Environment &environment_;
  const std::uint64_t may_be_absent_;
  std::set<std::string> known_;  // tests that have been reported
  std::vector<UnguardedRead> found_;
};

}  // namespace

std::vector<UnguardedRead> unguarded_reads(const Ast &ast, const Environment &environment,
                                           std::uint64_t may_be_absent) {
  Finder finder(ast, environment, may_be_absent);
  finder.walk(ast.root, {});
  return finder.take();
}

}  // namespace bulkhead::cel
