// Builds error messages for failed evaluations. A message contains keys and names from the
// expression, and the types of values in the call, but never the values themselves.
#include <bulkhead/cpp/text.hpp>

#include <algorithm>

#include "program.hpp"

namespace bulkhead::cel {
namespace {

constexpr std::size_t kMaxNameBytes = 60;

// Quotes a name. Replaces control characters with "?" and truncates long names at a character
// boundary.
std::string shown(std::string_view name) {
  const std::string_view head = bh::cut_text(name, kMaxNameBytes);
  return "'" + bh::printable(head) + (head.size() < name.size() ? "...'" : "'");
}

// Returns the symbol of an operator, such as "+" for "_+_", or an empty string.
std::string_view sign_of(const Node &node) {
  switch (node.op) {
    case Op::kLess:
      return "<";
    case Op::kLessEqual:
      return "<=";
    case Op::kGreater:
      return ">";
    case Op::kGreaterEqual:
      return ">=";
    case Op::kIn:
      return "in";
    case Op::kCall:
      if (node.name.starts_with('_')) return node.name.substr(1, node.name.size() - 2);
      return node.name == "-_" ? "-" : std::string_view{};
    default:
      return {};
  }
}

// Describes the failed operation by its operand types, such as "int + string",
// "int.startsWith(string)" or "size(int)".
std::string call_of(const Node &node, const Value &error) {
  const std::string first(kind_name(error.error_kind(0)));
  const bool two = error.error_kind(1) != Kind::kError;
  const std::string second(two ? kind_name(error.error_kind(1)) : "");
  if (node.op == Op::kIndex) return first + "[" + second + "]";
  if (node.op == Op::kMatches) return first + ".matches(string)";
  const std::string sign(sign_of(node));
  if (!sign.empty()) return two ? first + " " + sign + " " + second : sign + first;
  const std::string name(node.name);
  if (node.member) return first + "." + name + "(" + second + ")";
  return name + "(" + first + (two ? ", " + second : "") + ")";
}

bool takes_kinds(const Node &node) {
  switch (node.op) {
    case Op::kIndex:
    case Op::kMatches:
    case Op::kCall:
      return true;
    default:
      return !sign_of(node).empty();
  }
}

std::string key_of(const Ast &ast, const Node &node) {
  if (node.op == Op::kSelect) return " " + shown(node.name);
  if (node.op != Op::kIndex) return {};
  const Node &key = ast.nodes[ast.links[node.first + 1]];
  const bool written = key.op == Op::kConstant && key.value.is(Kind::kString);
  return written ? " " + shown(key.value.text()) : "";
}

}  // namespace

std::string Program::text_of(const Value &error) const {
  const char *text = error.error_text();
  const auto at = std::find_if(ast_.nodes.begin(), ast_.nodes.end(), [&](const Node &node) {
    if (node.position + 1 != error.error_place()) return false;
    return text == kNoOverload ? takes_kinds(node)
                               : node.op == Op::kSelect || node.op == Op::kIndex;
  });
  const bool found = at != ast_.nodes.end();
  if (text == kNoKey) return found ? text + key_of(ast_, *at) : text;
  const Kind first = error.error_kind(0);
  if (first == Kind::kError) return text;
  if (text == kNoOverload) {
    if (found) return "no such overload: " + call_of(*at, error);
    return "expected a bool, found " + std::string(kind_name(first));
  }
  return std::string(text) + ", not " + std::string(kind_name(first));
}

Fault Program::explain(const Value &error) const {
  const std::uint32_t place = error.error_place();
  return fault_at(source_, place == 0 ? 0 : place - 1,
                  error.is_error() ? text_of(error) : "no error");
}

}  // namespace bulkhead::cel
