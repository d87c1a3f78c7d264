// Defines the values of expressions. A Value takes 24 bytes, is cheap to copy, and owns nothing.
// Strings, lists and maps are owned by the caller, by the Program (for constants), or by the Arena
// of an evaluation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace bulkhead::cel {

enum class Kind : std::uint8_t {
  kError,   // the result of a failed evaluation; operators propagate it
  kAbsent,  // a declared variable without a value: has() returns false, reading it is an error
  kNull,
  kBool,
  kInt,
  kUint,
  kDouble,
  kString,
  kBytes,
  kList,
  kMap,
  kTimestamp,
  kDuration,
  kType,
  kDyn,  // only in declarations: the type is determined at evaluation
};

// Returns the CEL name of the type, such as "int", "null_type" or "google.protobuf.Duration".
std::string_view kind_name(Kind kind);

class Context;
class Value;

// Gives read access to a list without copying it. One stateless accessor serves all lists with the
// same representation. `object` is the pointer that was passed to Value::list(). The functions run
// on the evaluating thread and must not throw.
class ListAccess {
 public:
  virtual std::size_t size(const void *object) const = 0;
  virtual Value at(const void *object, std::size_t index) const = 0;  // index < size()

 protected:
  ~ListAccess() = default;
};

// Gives read access to a map without copying it. Entries can be accessed by index, so macros can
// iterate over the keys.
class MapAccess {
 public:
  virtual std::size_t size(const void *object) const = 0;
  virtual Value key(const void *object, std::size_t index) const = 0;  // index < size()
  virtual Value value(const void *object, std::size_t index) const = 0;
  // Finds the value for a key. Returns false if the key is missing or the evaluation has been
  // stopped. Charges the context for the key bytes that are compared. The caller must charge for
  // the number of entries.
  virtual bool find(Context &context, const void *object, const Value &key, Value *found) const = 0;

 protected:
  ~MapAccess() = default;
};

// A timestamp (since the Unix epoch) or a duration. `seconds` is rounded down, so 0 <= nanos < 1e9
// even for negative values.
struct Time {
  std::int64_t seconds = 0;
  std::int32_t nanos = 0;
  auto operator<=>(const Time &) const = default;
};

class Value {
 public:
  Value() : Value(Kind::kNull) {}

  static Value null() { return Value(Kind::kNull); }
  static Value absent() { return Value(Kind::kAbsent); }
  static Value of(bool value) { return make(Kind::kBool, &Value::bool_, value); }
  static Value of(std::int64_t value) { return make(Kind::kInt, &Value::int_, value); }
  static Value of(std::uint64_t value) { return make(Kind::kUint, &Value::uint_, value); }
  static Value of(double value) { return make(Kind::kDouble, &Value::double_, value); }
  static Value string(std::string_view text) { return borrowed(Kind::kString, text); }
  static Value bytes(std::string_view data) { return borrowed(Kind::kBytes, data); }
  static Value timestamp(Time time) { return timed(Kind::kTimestamp, time); }
  static Value duration(Time time) { return timed(Kind::kDuration, time); }
  static Value type(Kind kind) {
    return make(Kind::kType, &Value::int_, static_cast<std::int64_t>(kind));
  }
  static Value list(const ListAccess &access, const void *object) {
    Value value = make(Kind::kList, &Value::object_, object);
    value.list_ = &access;
    return value;
  }
  static Value map(const MapAccess &access, const void *object) {
    Value value = make(Kind::kMap, &Value::object_, object);
    value.map_ = &access;
    return value;
  }
  // `text` must be a string literal because errors must not allocate on the request path.
  static Value error(const char *text) { return make(Kind::kError, &Value::chars_, text); }
  // Creates an error for a unary or binary operation that does not accept the types of its
  // operands, and stores these types.
  static Value error(const char *text, const Value &a) {
    Value value = error(text);
    value.size_ = static_cast<std::size_t>(a.kind());
    return value;
  }
  static Value error(const char *text, const Value &a, const Value &b) {
    Value value = error(text, a);
    value.size_ |= static_cast<std::size_t>(b.kind()) << 8;
    return value;
  }

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_error() const { return kind_ == Kind::kError; }
  bool is_true() const { return kind_ == Kind::kBool && bool_; }
  bool is_number() const {
    return kind_ == Kind::kInt || kind_ == Kind::kUint || kind_ == Kind::kDouble;
  }

  // Each accessor may be called only if the value has the corresponding type.
  bool as_bool() const { return bool_; }
  std::int64_t as_int() const { return int_; }
  std::uint64_t as_uint() const { return uint_; }
  double as_double() const { return double_; }
  std::string_view text() const { return {chars_, size_}; }  // for a string or bytes
  Time time() const { return {int_, static_cast<std::int32_t>(extra_)}; }
  Kind as_type() const { return static_cast<Kind>(int_); }
  const char *error_text() const { return chars_; }
  Kind error_kind(unsigned index) const {  // type of operand 0 or 1, or kError if not set
    return static_cast<Kind>(size_ >> 8 * index & 0xFF);
  }

  std::size_t list_size() const { return list_->size(object_); }
  Value at(std::size_t index) const { return list_->at(object_, index); }
  std::size_t map_size() const { return map_->size(object_); }
  Value key(std::size_t index) const { return map_->key(object_, index); }
  Value entry(std::size_t index) const { return map_->value(object_, index); }
  bool find(Context &context, const Value &wanted, Value *found) const {
    return map_->find(context, object_, wanted, found);
  }

  // Position of the error in the expression: byte offset + 1, or 0 if unset.
  std::uint32_t error_place() const { return extra_; }
  void set_error_place(std::uint32_t place) { extra_ = place; }

 private:
  explicit Value(Kind kind) : kind_(kind), int_(0), size_(0) {}
  template <class T>
  static Value make(Kind kind, T Value::*member, T content) {
    Value value(kind);
    value.*member = content;
    return value;
  }
  static Value borrowed(Kind kind, std::string_view text) {
    Value value = make(kind, &Value::chars_, text.data());
    value.size_ = text.size();
    return value;
  }
  static Value timed(Kind kind, Time time) {
    Value value = make(kind, &Value::int_, time.seconds);
    value.extra_ = static_cast<std::uint32_t>(time.nanos);
    return value;
  }

  Kind kind_;
  std::uint32_t extra_ = 0;
  union {
    bool bool_;
    std::int64_t int_;
    std::uint64_t uint_;
    double double_;
    const char *chars_;
    const void *object_;
  };
  union {
    std::size_t size_;
    const ListAccess *list_;
    const MapAccess *map_;
  };
};

}  // namespace bulkhead::cel
