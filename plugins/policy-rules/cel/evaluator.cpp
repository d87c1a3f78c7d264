#include "evaluator.hpp"

#include <cmath>

#include "functions.hpp"

namespace bulkhead::cel {
namespace {

constexpr char kStopped[] = "the evaluation was stopped";

// Returns the number of elements that a macro iterates over: list elements or map keys.
std::size_t range_size(const Value &range) {
  return range.is(Kind::kList) ? range.list_size() : range.map_size();
}
Value range_at(const Value &range, std::size_t i) {
  return range.is(Kind::kList) ? range.at(i) : range.key(i);
}

bool is_key(const Value &value) {
  return value.is(Kind::kString) || value.is(Kind::kInt) || value.is(Kind::kUint) ||
         value.is(Kind::kBool);
}

}  // namespace

Value Evaluator::run(NodeId id) {
  const Node &node = ast_.nodes[id];
  if (!context_.charge(1)) return Value::error(kStopped);
  Value value = compute(node);
  if (value.is_error() && value.error_place() == 0) value.set_error_place(node.position + 1);
  return value;
}

Value Evaluator::compute(const Node &node) {
  switch (node.op) {
    case Op::kConstant:
      return node.value;
    case Op::kVariable:
      return variable(node);
    case Op::kLocal:
      return context_.locals[node.slot];
    case Op::kSelect:
      return select(node, false);
    case Op::kHas:
      return select(node, true);
    case Op::kHasVariable: {
      if (node.slot >= context_.variables.size()) return Value::of(false);
      // An error value does not indicate whether the variable exists, so has() returns the error.
      const Value &variable = context_.variables[node.slot];
      return variable.is_error() ? variable : Value::of(!variable.is(Kind::kAbsent));
    }
    case Op::kIndex:
      return index(node);
    case Op::kCall:
      return call(node);
    case Op::kMatches:
      return regex(node);
    case Op::kAnd:
      return logic(node, false);
    case Op::kOr:
      return logic(node, true);
    case Op::kNot: {
      const Value value = operand(node, 0);
      if (value.is_error()) return value;
      return value.is(Kind::kBool) ? Value::of(!value.as_bool()) : Value::error(kNoOverload, value);
    }
    case Op::kConditional:
      return conditional(node);
    case Op::kIn:
      return in(node);
    case Op::kList:
      return make_list(node);
    case Op::kMap:
      return make_map(node);
    case Op::kAll:
    case Op::kExists:
    case Op::kExistsOne:
    case Op::kFilter:
    case Op::kTransform:
      return macro(node);
    case Op::kName:
      return Value::error("the name was not resolved");
    default:
      return compare(node);
  }
}

Value Evaluator::variable(const Node &node) const {
  if (node.slot >= context_.variables.size() || context_.variables[node.slot].is(Kind::kAbsent)) {
    return Value::error("this variable has no value in this call");
  }
  return context_.variables[node.slot];
}

Value Evaluator::select(const Node &node, bool only_test) {
  const Value from = operand(node, 0);
  if (from.is_error()) return from;
  if (!from.is(Kind::kMap)) return Value::error(kNoFields, from);
  if (!context_.charge(from.map_size() / 4)) return Value::error(kStopped);
  Value found;
  const bool there = from.find(context_, Value::string(node.name), &found);
  if (context_.stopped()) return Value::error(kStopped);
  if (only_test) return Value::of(there);
  return there ? found : Value::error(kNoKey);
}

Value Evaluator::index(const Node &node) {
  const Value from = operand(node, 0);
  if (from.is_error()) return from;
  const Value at = operand(node, 1);
  if (at.is_error()) return at;
  if (from.is(Kind::kMap)) {
    if (!is_key(at) && !at.is(Kind::kDouble)) return Value::error("invalid key type for a map");
    if (!context_.charge(from.map_size() / 4)) return Value::error(kStopped);
    Value found;
    const bool there = from.find(context_, at, &found);
    if (context_.stopped()) return Value::error(kStopped);
    return there ? found : Value::error(kNoKey);
  }
  if (!from.is(Kind::kList) || !at.is_number()) return Value::error(kNoOverload, from, at);
  const Value zero = Value::of(std::int64_t{0});
  const Value size = Value::of(static_cast<std::uint64_t>(from.list_size()));
  if (at.is(Kind::kDouble) && std::trunc(at.as_double()) != at.as_double()) {
    return Value::error("the index is not a whole number");
  }
  if (order(context_, at, zero) == kLess || order(context_, at, size) != kLess) {
    return Value::error("index out of bounds");
  }
  if (at.is(Kind::kDouble)) return from.at(static_cast<std::size_t>(at.as_double()));
  return from.at(at.is(Kind::kInt) ? static_cast<std::size_t>(at.as_int()) : at.as_uint());
}

Value Evaluator::call(const Node &node) {
  Value arguments[Overload::kMaxParameters];
  for (std::uint32_t i = 0; i < node.count; ++i) {
    arguments[i] = operand(node, i);
    if (arguments[i].is_error()) return arguments[i];
  }
  for (const Overload &overload : node.overloads) {
    bool fits = overload.count == node.count;
    for (std::uint32_t i = 0; fits && i < node.count; ++i) {
      fits = overload.accepts(i, arguments[i].kind());
    }
    if (fits) return overload.function(context_, arguments);
  }
  return node.count < 2 ? Value::error(kNoOverload, arguments[0])
                        : Value::error(kNoOverload, arguments[0], arguments[1]);
}

Value Evaluator::regex(const Node &node) {
  const Value text = operand(node, 0);
  if (text.is_error()) return text;
  if (!text.is(Kind::kString)) return Value::error(kNoOverload, text);
  return regexes_[node.slot]->search(context_, text.text());
}

// Evaluates && and ||. If one operand decides the result, errors in other operands are ignored.
Value Evaluator::logic(const Node &node, bool decisive) {
  Value error = Value::null();
  for (std::uint32_t i = 0; i < node.count; ++i) {
    Value value = operand(node, i);
    if (context_.stopped()) return Value::error(kStopped);
    if (value.is(Kind::kBool)) {
      if (value.as_bool() == decisive) return value;
    } else if (!error.is_error()) {
      error = value.is_error() ? value : Value::error(kNoOverload, value);
    }
  }
  return error.is_error() ? error : Value::of(!decisive);
}

Value Evaluator::conditional(const Node &node) {
  const Value condition = operand(node, 0);
  if (condition.is_error()) return condition;
  if (!condition.is(Kind::kBool)) return Value::error(kNoOverload, condition);
  return operand(node, condition.as_bool() ? 1 : 2);
}

Value Evaluator::compare(const Node &node) {
  const Value a = operand(node, 0);
  if (a.is_error()) return a;
  const Value b = operand(node, 1);
  if (b.is_error()) return b;
  if (node.op == Op::kEqual) return Value::of(equal(context_, a, b));
  if (node.op == Op::kNotEqual) return Value::of(!equal(context_, a, b));
  const Order found = order(context_, a, b);
  if (found == kIncomparable) return Value::error(kNoOverload, a, b);
  switch (node.op) {
    case Op::kLess:
      return Value::of(found == kLess);
    case Op::kLessEqual:
      return Value::of(found == kLess || found == kSame);
    case Op::kGreater:
      return Value::of(found == kGreater);
    default:
      return Value::of(found == kGreater || found == kSame);
  }
}

Value Evaluator::in(const Node &node) {
  const Value wanted = operand(node, 0);
  if (wanted.is_error()) return wanted;
  const Value range = operand(node, 1);
  if (range.is_error()) return range;
  if (range.is(Kind::kMap)) {
    Value found;
    if (!context_.charge(range.map_size() / 4)) return Value::error(kStopped);
    const bool there = range.find(context_, wanted, &found);
    return context_.stopped() ? Value::error(kStopped) : Value::of(there);
  }
  if (!range.is(Kind::kList)) return Value::error(kNoOverload, wanted, range);
  const std::size_t size = range.list_size();
  for (std::size_t i = 0; i < size; ++i) {
    if (equal(context_, wanted, range.at(i))) return Value::of(true);
    if (context_.stopped()) return Value::error(kStopped);
  }
  return Value::of(false);
}

Value Evaluator::make_list(const Node &node) {
  Value *values = context_.value_room(node.count);
  if (!values) return Value::error(kStopped);
  for (std::uint32_t i = 0; i < node.count; ++i) {
    const Value value = operand(node, i);
    if (value.is_error()) return value;
    new (values + i) Value(value);
  }
  return context_.make_list(values, node.count);
}

Value Evaluator::make_map(const Node &node) {
  Value *pairs = context_.value_room(node.count);
  if (!pairs) return Value::error(kStopped);
  for (std::uint32_t i = 0; i < node.count; ++i) {
    const Value value = operand(node, i);
    if (value.is_error()) return value;
    new (pairs + i) Value(value);
    if (i % 2 == 1) continue;
    if (!is_key(value)) return Value::error("a key must be a string, an int, a uint or a bool");
    for (std::uint32_t k = 0; k < i; k += 2) {
      if (equal(context_, pairs[k], value)) return Value::error("duplicate key");
    }
  }
  return context_.make_map(pairs, node.count / 2);
}

Value Evaluator::macro(const Node &node) {
  const Value range = operand(node, 0);
  if (range.is_error()) return range;
  if (!range.is(Kind::kList) && !range.is(Kind::kMap)) {
    return Value::error("a macro requires a list or a map");
  }
  switch (node.op) {
    case Op::kAll:
      return quantifier(node, range, false);
    case Op::kExists:
      return quantifier(node, range, true);
    case Op::kExistsOne:
      return exists_one(node, range);
    default:
      return collect(node, range);
  }
}

Value Evaluator::quantifier(const Node &node, const Value &range, bool decisive) {
  Value error = Value::null();
  const std::size_t size = range_size(range);
  for (std::size_t i = 0; i < size; ++i) {
    context_.locals[node.slot] = range_at(range, i);
    const Value value = operand(node, 1);
    if (context_.stopped()) return Value::error(kStopped);
    if (value.is(Kind::kBool)) {
      if (value.as_bool() == decisive) return value;
    } else if (!error.is_error()) {
      error = value.is_error() ? value : Value::error(kNoOverload, value);
    }
  }
  return error.is_error() ? error : Value::of(!decisive);
}

Value Evaluator::exists_one(const Node &node, const Value &range) {
  std::size_t matching = 0;
  const std::size_t size = range_size(range);
  for (std::size_t i = 0; i < size; ++i) {
    context_.locals[node.slot] = range_at(range, i);
    const Value value = operand(node, 1);
    if (value.is_error()) return value;
    if (!value.is(Kind::kBool)) return Value::error(kNoOverload, value);
    if (value.as_bool()) ++matching;
  }
  return Value::of(matching == 1);
}

Value Evaluator::collect(const Node &node, const Value &range) {
  const std::size_t size = range_size(range);
  Value *values = context_.charge(size) ? context_.value_room(size) : nullptr;
  if (!values) return Value::error(kStopped);
  const bool filters = node.op == Op::kFilter || node.count == 3;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < size; ++i) {
    Value value = range_at(range, i);
    context_.locals[node.slot] = value;
    if (filters) {
      const Value keep = operand(node, 1);
      if (keep.is_error()) return keep;
      if (!keep.is(Kind::kBool)) return Value::error(kNoOverload, keep);
      if (!keep.as_bool()) continue;
    }
    if (node.op == Op::kTransform) value = operand(node, node.count - 1);
    if (value.is_error()) return value;
    new (values + kept++) Value(value);
  }
  return context_.make_list(values, kept);
}

}  // namespace bulkhead::cel
