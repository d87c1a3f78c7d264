// What an expression may name: variables with their types.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "value.hpp"

namespace bulkhead::cel {

// A static type: a kind, and for lists and maps what is in them. Deeper than 8 levels it is dyn.
class Type {
 public:
  Type(Kind kind = Kind::kDyn) : kind_(kind) {}  // NOLINT(google-explicit-constructor)
  static Type list(const Type &element) { return Type(Kind::kList, Kind::kDyn, element); }
  static Type map(Kind key, const Type &value) { return Type(Kind::kMap, key, value); }

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_dyn() const { return kind_ == Kind::kDyn; }
  Kind key() const { return key_; }                                   // of a map
  Type inner() const { return inner_ ? *inner_ : Type(Kind::kDyn); }  // elements; values of a map
  std::string to_string() const;

 private:
  Type(Kind kind, Kind key, const Type &inner);

  Kind kind_;
  Kind key_ = Kind::kDyn;
  std::uint8_t depth_ = 0;
  std::shared_ptr<const Type> inner_;
};

// Could a value of one be a value of the other? dyn could be anything.
bool compatible(const Type &a, const Type &b);
// The type of something that is either.
Type join(const Type &a, const Type &b);

class Environment {
 public:
  // `name` may have dots ("mcp.request.tool_name"); the longest declared name wins over reading a
  // field. Returns its slot: the place of its value in Program::evaluate()'s `variables`. Slots
  // count from 0 in the order of declaration. A variable of a call that has none is
  // Value::absent().
  std::uint32_t declare(std::string name, Type type) {
    variables_.push_back({std::move(name), std::move(type)});
    return static_cast<std::uint32_t>(variables_.size() - 1);
  }

  // Called with a name that is not declared ("event.type", as far as it has dots); what it returns
  // is the text of the refusal. std::nullopt: the ordinary text.
  std::function<std::optional<std::string>(std::string_view name)> refuse;

  struct Variable {
    std::string name;
    Type type;
  };
  const std::vector<Variable> &variables() const { return variables_; }
  std::optional<std::uint32_t> find(std::string_view name) const;

 private:
  std::vector<Variable> variables_;
};

}  // namespace bulkhead::cel
