// Declares the variables of an expression and their types.
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

// A static type. Lists and maps have element types. A type that is nested deeper than 8 levels is
// replaced with dyn.
class Type {
 public:
  Type(Kind kind = Kind::kDyn) : kind_(kind) {}  // NOLINT(google-explicit-constructor)
  static Type list(const Type &element) { return Type(Kind::kList, Kind::kDyn, element); }
  static Type map(Kind key, const Type &value) { return Type(Kind::kMap, key, value); }

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_dyn() const { return kind_ == Kind::kDyn; }
  Kind key() const { return key_; }  // type of map keys
  // Returns the type of the list elements or map values, or dyn if that type is not known.
  Type inner() const { return inner_ ? *inner_ : Type(Kind::kDyn); }
  std::string to_string() const;

 private:
  Type(Kind kind, Kind key, const Type &inner);

  Kind kind_;
  Kind key_ = Kind::kDyn;
  std::uint8_t depth_ = 0;
  std::shared_ptr<const Type> inner_;
};

// Returns true if some value could have both types. dyn is compatible with every type.
bool compatible(const Type &a, const Type &b);
// Returns the most specific type that includes both types.
Type join(const Type &a, const Type &b);

class Environment {
 public:
  // Declares a variable and returns its slot, which is its index in the `variables` of
  // Program::evaluate(). Slots are numbered from 0 in order of declaration. `name` may contain dots
  // ("mcp.request.tool_name"). In a path such as a.b.c, the longest declared name is used, and only
  // the rest of the path selects fields. A variable without a value is Value::absent().
  std::uint32_t declare(std::string name, Type type) {
    variables_.push_back({std::move(name), std::move(type)});
    return static_cast<std::uint32_t>(variables_.size() - 1);
  }

  // Called for an undeclared name, such as "event.type". Returns the error message, or std::nullopt
  // for the default message.
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
