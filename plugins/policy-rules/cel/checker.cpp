#include "checker.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "functions.hpp"

namespace bulkhead::cel {
namespace {

// Total evaluation budget for folding the constants in one expression.
constexpr std::uint64_t kFoldingBudget = 1'000'000;

std::string quoted(std::string_view name) {
  return "'" + std::string(name) + "'";
}

// Returns an operator or function name as it is written in an expression.
std::string shown_name(std::string_view name) {
  if (name == "-_") return "'-'";
  return name.starts_with('_') ? quoted(name.substr(1, name.size() - 2)) : quoted(name);
}

std::optional<Kind> type_named(std::string_view name) {
  for (int kind = static_cast<int>(Kind::kNull); kind <= static_cast<int>(Kind::kType); ++kind) {
    if (kind_name(static_cast<Kind>(kind)) == name) return static_cast<Kind>(kind);
  }
  return std::nullopt;
}

bool is_numeric(const Type &type) {
  return type.is(Kind::kInt) || type.is(Kind::kUint) || type.is(Kind::kDouble);
}

bool has_order(const Type &type) {
  return type.is_dyn() || is_numeric(type) || type.is(Kind::kString) || type.is(Kind::kBytes) ||
         type.is(Kind::kBool) || type.is(Kind::kTimestamp) || type.is(Kind::kDuration);
}

class Checker {
 public:
  Checker(std::string_view source, const Environment &environment, Ast *ast, Regexes *regexes)
      : source_(source),
        environment_(environment),
        ast_(*ast),
        regexes_(*regexes),
        folding_(ast->arena, kFoldingBudget, {}) {}

  std::expected<Type, Fault> run() {
    Type type = check(ast_.root);
    if (fault_) return std::unexpected(*fault_);
    return type;
  }

 private:
  struct Local {
    std::string_view name;
    Type type;
  };

  // Reports the first error. From then on, every type is dyn, so no follow-up errors are reported.
  Type fail(const Node &node, std::string text) {
    if (!fault_) fault_ = fault_at(source_, node.position, std::move(text));
    return Kind::kDyn;
  }

  Type check(NodeId id) {
    if (fault_) return Kind::kDyn;
    Type type = resolve(ast_.nodes[id]);
    if (!fault_) fold(id);
    return type;
  }
  Type operand(const Node &node, std::size_t index) {
    return check(ast_.links[node.first + index]);
  }

  Type resolve(Node &node) {
    switch (node.op) {
      case Op::kConstant:
        return node.value.kind();
      case Op::kName:
      case Op::kSelect:
      case Op::kHas:
        return name_or_field(node);
      case Op::kIndex:
        return index(node);
      case Op::kCall:
        return call(node);
      case Op::kAnd:
      case Op::kOr:
      case Op::kNot:
        for (std::uint32_t i = 0; i < node.count; ++i) {
          expect_bool(node, i, node.op == Op::kAnd ? "&&" : node.op == Op::kOr ? "||" : "!");
        }
        return Kind::kBool;
      case Op::kConditional: {
        expect_bool(node, 0, "?");
        const Type yes = operand(node, 1);
        return join(yes, operand(node, 2));
      }
      case Op::kIn:
        return in(node);
      case Op::kList:
      case Op::kMap:
        return aggregate(node);
      case Op::kAll:
      case Op::kExists:
      case Op::kExistsOne:
      case Op::kFilter:
      case Op::kTransform:
        return macro(node);
      default:
        return comparison(node);
    }
  }

  void expect_bool(const Node &node, std::size_t index, std::string_view where) {
    const Type type = operand(node, index);
    if (type.is_dyn() || type.is(Kind::kBool)) return;
    fail(ast_.nodes[ast_.links[node.first + index]],
         quoted(where) + " requires a bool, not " + type.to_string());
  }

  const Local *local(std::string_view name) const {
    const auto found = std::find_if(locals_.rbegin(), locals_.rend(),
                                    [&](const Local &one) { return one.name == name; });
    return found == locals_.rend() ? nullptr : &*found;
  }

  // If the node consists only of names, returns the path, such as "a.b.c". Returns an empty string
  // for all other nodes and for paths that start with a macro variable.
  std::string path_of(const Node &node) const {
    std::vector<std::string_view> words;
    const Node *at = &node;
    while (at->op == Op::kSelect || (at == &node && at->op == Op::kHas)) {
      words.push_back(at->name);
      at = &ast_.nodes[ast_.links[at->first]];
    }
    if (at->op != Op::kName || (!at->absolute && local(at->name))) return {};
    std::string path(at->name);
    for (auto word = words.rbegin(); word != words.rend(); ++word) {
      path += '.';
      path += *word;
    }
    return path;
  }

  Type name_or_field(Node &node) {
    if (node.op == Op::kName && !node.absolute) {
      if (const Local *found = local(node.name)) {
        node.slot = static_cast<std::uint32_t>(found - locals_.data());
        node.op = Op::kLocal;
        return found->type;
      }
    }
    if (const std::string path = path_of(node); !path.empty()) {
      if (const auto slot = environment_.find(path)) {
        node.op = node.op == Op::kHas ? Op::kHasVariable : Op::kVariable;
        node.slot = *slot;
        return node.op == Op::kHasVariable ? Type(Kind::kBool)
                                           : environment_.variables()[*slot].type;
      }
      if (const auto kind = type_named(path); kind && node.op != Op::kHas) {
        node.op = Op::kConstant;
        node.count = 0;
        node.value = Value::type(*kind);
        return Kind::kType;
      }
      if (!starts_with_known(path)) return unknown(node, path);
    }
    return field(node);
  }

  bool starts_with_known(std::string_view path) const {
    for (std::size_t dot = path.rfind('.'); dot != std::string_view::npos; dot = path.rfind('.')) {
      path = path.substr(0, dot);
      if (environment_.find(path)) return true;
    }
    return false;
  }

  Type unknown(const Node &node, const std::string &path) {
    if (environment_.refuse) {
      if (auto text = environment_.refuse(path)) return fail(node, std::move(*text));
    }
    // Suggests the declared names that share the longest prefix with the unknown path.
    std::string prefix = path;
    std::string names;
    do {
      const std::size_t dot = prefix.rfind('.', prefix.size() - 2);
      prefix = dot == std::string::npos || prefix.size() < 2 ? "" : prefix.substr(0, dot + 1);
      for (const auto &variable : environment_.variables()) {
        if (!variable.name.starts_with(prefix)) continue;
        names += (names.empty() ? "" : ", ") + variable.name;
      }
    } while (names.empty() && !prefix.empty());
    return fail(
        node, quoted(path) + " is not declared; known names: " + (names.empty() ? "none" : names));
  }

  Type field(Node &node) {
    const Type from = operand(node, 0);
    if (fault_) return Kind::kDyn;
    if (!from.is_dyn() && !from.is(Kind::kMap)) {
      return fail(node, from.to_string() + " has no field " + quoted(node.name));
    }
    if (from.is(Kind::kMap) && from.key() != Kind::kString && from.key() != Kind::kDyn) {
      return fail(node, "the keys of " + from.to_string() + " are not strings; use [ ]");
    }
    if (node.op == Op::kHas) return Kind::kBool;
    return from.is(Kind::kMap) ? from.inner() : Type(Kind::kDyn);
  }

  Type index(Node &node) {
    const Type from = operand(node, 0);
    const Type at = operand(node, 1);
    if (from.is_dyn()) return Kind::kDyn;
    if (from.is(Kind::kList)) {
      if (!at.is_dyn() && !at.is(Kind::kInt)) {
        return fail(node, "the index of a list must be an int, not " + at.to_string());
      }
      return from.inner();
    }
    if (!from.is(Kind::kMap)) return fail(node, from.to_string() + " has no elements");
    if (!compatible(at, from.key()) && !(is_numeric(at) && is_numeric(from.key()))) {
      return fail(node, from.to_string() + " cannot have a key of type " + at.to_string());
    }
    return from.inner();
  }

  Type call(Node &node) {
    const auto all = find_overloads(node.name, node.member);
    if (all.empty()) {
      const bool other = !find_overloads(node.name, !node.member).empty();
      return fail(node,
                  std::string("unknown ") + (node.member ? "method " : "function ") +
                      quoted(node.name) +
                      (!other        ? ""
                       : node.member ? "; it is a function: " + std::string(node.name) + "(x)"
                                     : "; it is a method: x." + std::string(node.name) + "()"));
    }
    std::vector<Type> types;
    for (std::uint32_t i = 0; i < node.count; ++i) types.push_back(operand(node, i));
    if (fault_) return Kind::kDyn;
    std::vector<const Overload *> fitting;
    for (const Overload &one : all) {
      bool fits = one.count == types.size();
      for (std::size_t i = 0; fits && i < types.size(); ++i) {
        fits = types[i].is_dyn() || one.accepts(i, types[i].kind());
      }
      if (fits) fitting.push_back(&one);
    }
    if (fitting.empty()) return no_overload(node, all, types);
    node.overloads = fitting.size() == 1 ? std::span(fitting[0], 1) : all;
    Type result = fitting[0]->result;
    for (const Overload *one : fitting) result = join(result, one->result);
    if (result.is(Kind::kList)) result = join(types[0], types[1]);
    return literal_regex(node, result);
  }

  Type no_overload(const Node &node, std::span<const Overload> all,
                   const std::vector<Type> &types) {
    std::string text = shown_name(node.name) + " does not accept (";
    for (const Type &type : types) text += (&type == types.data() ? "" : ", ") + type.to_string();
    text += "), only ";
    for (const Overload &one : all) {
      text += &one == all.data() ? "(" : ", (";
      for (std::size_t i = 0; i < one.count; ++i) {
        text += (i ? ", " : "") + std::string(kind_name(one.parameters[i]));
      }
      text += ")";
    }
    return fail(node, std::move(text));
  }

  Type literal_regex(Node &node, Type result) {
    if (node.name != "matches") return result;
    const Node &pattern = ast_.nodes[ast_.links[node.first + 1]];
    if (pattern.op != Op::kConstant || !pattern.value.is(Kind::kString)) return result;
    if (pattern.value.text().size() > Regex::kMaxPattern) {
      return fail(pattern, "the regular expression is longer than 4096 bytes");
    }
    auto regex = std::make_unique<const Regex>(pattern.value.text());
    if (!regex->ok()) return fail(pattern, "invalid regular expression: " + regex->error());
    node.op = Op::kMatches;
    node.slot = static_cast<std::uint32_t>(regexes_.size());
    node.count = 1;
    regexes_.push_back(std::move(regex));
    return result;
  }

  Type comparison(Node &node) {
    const Type a = operand(node, 0);
    const Type b = operand(node, 1);
    if (fault_) return Kind::kDyn;
    const bool same = compatible(a, b) || (is_numeric(a) && is_numeric(b));
    const bool by_value = node.op == Op::kEqual || node.op == Op::kNotEqual;
    if (!same || (!by_value && (!has_order(a) || !has_order(b)))) {
      return fail(node, a.to_string() + " and " + b.to_string() + " cannot be compared" +
                            (by_value ? "; convert one with dyn()" : " in this way"));
    }
    return Kind::kBool;
  }

  Type in(Node &node) {
    const Type wanted = operand(node, 0);
    const Type range = operand(node, 1);
    if (fault_ || range.is_dyn()) return Kind::kBool;
    if (!range.is(Kind::kList) && !range.is(Kind::kMap)) {
      return fail(node, "'in' requires a list or a map, not " + range.to_string());
    }
    const Type element = range.is(Kind::kList) ? range.inner() : Type(range.key());
    if (!compatible(wanted, element) && !(is_numeric(wanted) && is_numeric(element))) {
      return fail(node, wanted.to_string() + " cannot be in " + range.to_string());
    }
    return Kind::kBool;
  }

  Type aggregate(Node &node) {
    const bool is_map = node.op == Op::kMap;
    const std::uint32_t step = is_map ? 2 : 1;
    Type keys;
    Type values;
    for (std::uint32_t i = 0; i < node.count; i += step) {
      if (is_map) {
        const Type key = operand(node, i);
        check_key(ast_.nodes[ast_.links[node.first + i]], key);
        keys = i == 0 ? key : join(keys, key);
      }
      const Type value = operand(node, i + step - 1);
      values = i == 0 ? value : join(values, value);
    }
    return is_map ? Type::map(keys.kind(), values) : Type::list(values);
  }

  void check_key(const Node &node, const Type &key) {
    const bool allowed = key.is_dyn() || key.is(Kind::kString) || key.is(Kind::kInt) ||
                         key.is(Kind::kUint) || key.is(Kind::kBool);
    if (!allowed) {
      fail(node, "a key must be a string, an int, a uint or a bool, not " + key.to_string());
    }
  }

  Type macro(Node &node) {
    const Type range = operand(node, 0);
    if (fault_) return Kind::kDyn;
    if (!range.is_dyn() && !range.is(Kind::kList) && !range.is(Kind::kMap)) {
      return fail(node, "a macro requires a list or a map, not " + range.to_string());
    }
    if (locals_.size() == Context::kMaxLocals) return fail(node, "more than 16 nested macros");
    const Type element = range.is(Kind::kMap) ? Type(range.key()) : range.inner();
    node.slot = static_cast<std::uint32_t>(locals_.size());
    locals_.push_back({node.name, element});
    const bool transforms = node.op == Op::kTransform;
    if (!transforms || node.count == 3) expect_bool(node, 1, "a macro's condition");
    const Type made = transforms ? operand(node, node.count - 1) : element;
    locals_.pop_back();
    if (node.op == Op::kFilter || transforms) return Type::list(made);
    return Kind::kBool;
  }

  // Replaces a node with its value if all operands are constants and the evaluation succeeds.
  void fold(NodeId id) {
    Node &node = ast_.nodes[id];
    const bool foldable = node.op != Op::kConstant && node.op != Op::kVariable &&
                          node.op != Op::kHasVariable && node.op != Op::kLocal;
    if (!foldable || folding_.stopped()) return;
    for (const NodeId operand : ast_.operands(node)) {
      if (ast_.nodes[operand].op != Op::kConstant) return;
    }
    const Value value = Evaluator(ast_, regexes_, folding_).run(id);
    if (folding_.stopped() || value.is_error()) return;
    node.op = Op::kConstant;
    node.count = 0;
    node.value = value;
  }

  std::string_view source_;
  const Environment &environment_;
  Ast &ast_;
  Regexes &regexes_;
  Context folding_;
  std::vector<Local> locals_;
  std::optional<Fault> fault_;
};

}  // namespace

std::expected<Type, Fault> check(std::string_view source, const Environment &environment, Ast *ast,
                                 Regexes *regexes) {
  return Checker(source, environment, ast, regexes).run();
}

}  // namespace bulkhead::cel
