#include <cmath>
#include <cstring>
#include <limits>

#include "functions.hpp"
#include "time.hpp"

namespace bulkhead::cel {
namespace {

constexpr char kOverflow[] = "integer overflow";
constexpr char kDivision[] = "division by zero";
constexpr char kModulus[] = "modulus by zero";
constexpr char kTimeRange[] = "time out of range";

Value add_ints(Context &, const Value *a) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a[0].as_int(), a[1].as_int(), &sum) ? Value::error(kOverflow)
                                                                    : Value::of(sum);
}
Value add_uints(Context &, const Value *a) {
  std::uint64_t sum = 0;
  return __builtin_add_overflow(a[0].as_uint(), a[1].as_uint(), &sum) ? Value::error(kOverflow)
                                                                      : Value::of(sum);
}
Value add_doubles(Context &, const Value *a) {
  return Value::of(a[0].as_double() + a[1].as_double());
}

Value add_text(Context &context, const Value *a) {
  const std::string_view first = a[0].text();
  const std::string_view second = a[1].text();
  const std::size_t size = first.size() + second.size();
  char *room = context.charge_text(size) ? context.text_room(size) : nullptr;
  if (!room) return Value::error("the evaluation exceeds its budget");
  if (!first.empty()) std::memcpy(room, first.data(), first.size());
  if (!second.empty()) std::memcpy(room + first.size(), second.data(), second.size());
  return a[0].is(Kind::kBytes) ? Value::bytes({room, size}) : Value::string({room, size});
}

Value add_lists(Context &context, const Value *a) {
  const std::size_t first = a[0].list_size();
  const std::size_t second = a[1].list_size();
  Value *room = context.charge(first + second) ? context.value_room(first + second) : nullptr;
  if (!room) return Value::error("the evaluation exceeds its budget");
  for (std::size_t i = 0; i < first; ++i) new (room + i) Value(a[0].at(i));
  for (std::size_t i = 0; i < second; ++i) new (room + first + i) Value(a[1].at(i));
  return context.make_list(room, first + second);
}

Value timestamp_or_error(std::optional<Time> time) {
  return time && in_timestamp_range(*time) ? Value::timestamp(*time) : Value::error(kTimeRange);
}
Value duration_or_error(std::optional<Time> time) {
  return time && in_duration_range(*time) ? Value::duration(*time) : Value::error(kTimeRange);
}
Value add_to_timestamp(Context &, const Value *a) {
  return timestamp_or_error(sum(a[0].time(), a[1].time()));
}
Value add_durations(Context &, const Value *a) {
  return duration_or_error(sum(a[0].time(), a[1].time()));
}
Value subtract_times(Context &, const Value *a) {
  return duration_or_error(difference(a[0].time(), a[1].time()));
}
Value subtract_from_timestamp(Context &, const Value *a) {
  return timestamp_or_error(difference(a[0].time(), a[1].time()));
}

Value subtract_ints(Context &, const Value *a) {
  std::int64_t left = 0;
  return __builtin_sub_overflow(a[0].as_int(), a[1].as_int(), &left) ? Value::error(kOverflow)
                                                                     : Value::of(left);
}
Value subtract_uints(Context &, const Value *a) {
  std::uint64_t left = 0;
  return __builtin_sub_overflow(a[0].as_uint(), a[1].as_uint(), &left) ? Value::error(kOverflow)
                                                                       : Value::of(left);
}
Value subtract_doubles(Context &, const Value *a) {
  return Value::of(a[0].as_double() - a[1].as_double());
}

Value multiply_ints(Context &, const Value *a) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a[0].as_int(), a[1].as_int(), &product) ? Value::error(kOverflow)
                                                                        : Value::of(product);
}
Value multiply_uints(Context &, const Value *a) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a[0].as_uint(), a[1].as_uint(), &product) ? Value::error(kOverflow)
                                                                          : Value::of(product);
}
Value multiply_doubles(Context &, const Value *a) {
  return Value::of(a[0].as_double() * a[1].as_double());
}

bool overflows(const Value *a) {  // only min / -1 and min % -1 overflow
  return a[0].as_int() == std::numeric_limits<std::int64_t>::min() && a[1].as_int() == -1;
}
Value divide_ints(Context &, const Value *a) {
  if (a[1].as_int() == 0) return Value::error(kDivision);
  return overflows(a) ? Value::error(kOverflow) : Value::of(a[0].as_int() / a[1].as_int());
}
Value divide_uints(Context &, const Value *a) {
  return a[1].as_uint() == 0 ? Value::error(kDivision) : Value::of(a[0].as_uint() / a[1].as_uint());
}
Value divide_doubles(Context &, const Value *a) {
  const double by = a[1].as_double();
  if (by != 0) return Value::of(a[0].as_double() / by);
  // Computes the IEEE 754 result of x / 0 explicitly, because the sanitizer would report the
  // division.
  const double over = a[0].as_double();
  if (over == 0 || std::isnan(over)) return Value::of(std::numeric_limits<double>::quiet_NaN());
  const double infinity = std::numeric_limits<double>::infinity();
  return Value::of(std::signbit(over) == std::signbit(by) ? infinity : -infinity);
}
Value modulo_ints(Context &, const Value *a) {
  if (a[1].as_int() == 0) return Value::error(kModulus);
  return overflows(a) ? Value::error(kOverflow) : Value::of(a[0].as_int() % a[1].as_int());
}
Value modulo_uints(Context &, const Value *a) {
  return a[1].as_uint() == 0 ? Value::error(kModulus) : Value::of(a[0].as_uint() % a[1].as_uint());
}

Value negate_int(Context &, const Value *a) {
  std::int64_t negative = 0;
  return __builtin_sub_overflow(std::int64_t{0}, a[0].as_int(), &negative) ? Value::error(kOverflow)
                                                                           : Value::of(negative);
}
Value negate_double(Context &, const Value *a) {
  return Value::of(-a[0].as_double());
}

}  // namespace

std::span<const Overload> arithmetic_overloads() {
  using enum Kind;
  static constexpr Overload table[] = {
      {"_+_", false, 2, {kInt, kInt}, kInt, add_ints},
      {"_+_", false, 2, {kUint, kUint}, kUint, add_uints},
      {"_+_", false, 2, {kDouble, kDouble}, kDouble, add_doubles},
      {"_+_", false, 2, {kString, kString}, kString, add_text},
      {"_+_", false, 2, {kBytes, kBytes}, kBytes, add_text},
      {"_+_", false, 2, {kList, kList}, kList, add_lists},
      {"_+_", false, 2, {kTimestamp, kDuration}, kTimestamp, add_to_timestamp},
      {"_+_", false, 2, {kDuration, kTimestamp}, kTimestamp, add_to_timestamp},
      {"_+_", false, 2, {kDuration, kDuration}, kDuration, add_durations},
      {"_-_", false, 2, {kInt, kInt}, kInt, subtract_ints},
      {"_-_", false, 2, {kUint, kUint}, kUint, subtract_uints},
      {"_-_", false, 2, {kDouble, kDouble}, kDouble, subtract_doubles},
      {"_-_", false, 2, {kTimestamp, kTimestamp}, kDuration, subtract_times},
      {"_-_", false, 2, {kTimestamp, kDuration}, kTimestamp, subtract_from_timestamp},
      {"_-_", false, 2, {kDuration, kDuration}, kDuration, subtract_times},
      {"_*_", false, 2, {kInt, kInt}, kInt, multiply_ints},
      {"_*_", false, 2, {kUint, kUint}, kUint, multiply_uints},
      {"_*_", false, 2, {kDouble, kDouble}, kDouble, multiply_doubles},
      {"_/_", false, 2, {kInt, kInt}, kInt, divide_ints},
      {"_/_", false, 2, {kUint, kUint}, kUint, divide_uints},
      {"_/_", false, 2, {kDouble, kDouble}, kDouble, divide_doubles},
      {"_%_", false, 2, {kInt, kInt}, kInt, modulo_ints},
      {"_%_", false, 2, {kUint, kUint}, kUint, modulo_uints},
      {"-_", false, 1, {kInt, kDyn}, kInt, negate_int},
      {"-_", false, 1, {kDouble, kDyn}, kDouble, negate_double},
  };
  return table;
}

}  // namespace bulkhead::cel
