// Implements the CEL conversions int(), uint(), double(), string(), bytes(), bool(), timestamp()
// and duration(), and the functions type() and dyn().
#include <bulkhead/cpp/text.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

#include "functions.hpp"
#include "time.hpp"

namespace bulkhead::cel {
namespace {

constexpr char kRange[] = "number out of range";
constexpr char kNoNumber[] = "the string is not a number";

Value same(Context &, const Value *a) {
  return a[0];
}

template <class Number>
Value parse(Context &context, const Value *a) {
  if (!context.charge_text(4 * a[0].text().size())) return Value::error("");
  std::string_view text = a[0].text();
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::result_out_of_range) return Value::error(kRange);
  if (error != std::errc() || end != text.data() + text.size()) return Value::error(kNoNumber);
  return Value::of(number);
}

Value int_of_uint(Context &, const Value *a) {
  return std::in_range<std::int64_t>(a[0].as_uint())
             ? Value::of(static_cast<std::int64_t>(a[0].as_uint()))
             : Value::error(kRange);
}
Value int_of_double(Context &, const Value *a) {
  // The limits themselves are excluded, because a double at a limit may be the result of rounding.
  const double number = a[0].as_double();
  return number > -0x1p63 && number < 0x1p63 ? Value::of(static_cast<std::int64_t>(number))
                                             : Value::error(kRange);
}
Value int_of_time(Context &, const Value *a) {
  return Value::of(a[0].time().seconds);
}
Value uint_of_int(Context &, const Value *a) {
  return a[0].as_int() >= 0 ? Value::of(static_cast<std::uint64_t>(a[0].as_int()))
                            : Value::error(kRange);
}
Value uint_of_double(Context &, const Value *a) {
  const double number = a[0].as_double();
  return number > -1 && number >= 0 && number < 0x1p64
             ? Value::of(static_cast<std::uint64_t>(number))
             : Value::error(kRange);
}
Value double_of_int(Context &, const Value *a) {
  return Value::of(static_cast<double>(a[0].as_int()));
}
Value double_of_uint(Context &, const Value *a) {
  return Value::of(static_cast<double>(a[0].as_uint()));
}

template <class Number>
Value print(Context &context, Number number) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof(text), number);
  return context.copy_string({text, end});
}
Value string_of_int(Context &context, const Value *a) {
  return print(context, a[0].as_int());
}
Value string_of_uint(Context &context, const Value *a) {
  return print(context, a[0].as_uint());
}
Value string_of_double(Context &context, const Value *a) {
  const double number = a[0].as_double();
  if (std::isnan(number)) return Value::string("NaN");
  if (std::isinf(number)) return Value::string(number < 0 ? "-Inf" : "+Inf");
  return print(context, number);
}
Value string_of_bool(Context &, const Value *a) {
  return Value::string(a[0].as_bool() ? "true" : "false");
}
Value string_of_bytes(Context &context, const Value *a) {
  if (!context.charge_text(a[0].text().size())) return Value::error("");
  return bh::is_utf8(a[0].text()) ? Value::string(a[0].text())
                                  : Value::error("the bytes are not valid UTF-8");
}
Value string_of_timestamp(Context &context, const Value *a) {
  return context.copy_string(format_timestamp(a[0].time()));
}
Value string_of_duration(Context &context, const Value *a) {
  return context.copy_string(format_duration(a[0].time()));
}
Value bytes_of_string(Context &, const Value *a) {
  return Value::bytes(a[0].text());
}

Value bool_of_string(Context &, const Value *a) {
  const std::string_view text = a[0].text();
  for (const std::string_view word : {"true", "True", "TRUE", "t", "1"}) {
    if (text == word) return Value::of(true);
  }
  for (const std::string_view word : {"false", "False", "FALSE", "f", "0"}) {
    if (text == word) return Value::of(false);
  }
  return Value::error("the string must be true or false");
}

Value timestamp_of_string(Context &context, const Value *a) {
  if (!context.charge_text(4 * a[0].text().size())) return Value::error("");
  const auto time = parse_timestamp(a[0].text());
  return time ? Value::timestamp(*time)
              : Value::error("not an RFC 3339 timestamp in the years 1 to 9999");
}
Value timestamp_of_int(Context &, const Value *a) {
  const Time time{a[0].as_int(), 0};
  return in_timestamp_range(time) ? Value::timestamp(time) : Value::error("timestamp out of range");
}
Value duration_of_string(Context &context, const Value *a) {
  // Charges for each byte, because a component such as "1h" can be as short as two bytes, and each
  // component requires a 128-bit division.
  if (!context.charge(a[0].text().size())) return Value::error("");
  const auto time = parse_duration(a[0].text());
  return time ? Value::duration(*time)
              : Value::error("invalid or out-of-range duration (expected a value such as 1h30m)");
}
Value type_of(Context &, const Value *a) {
  return Value::type(a[0].kind());
}

}  // namespace

std::span<const Overload> conversion_overloads() {
  using enum Kind;
  static constexpr Overload table[] = {
      {"int", false, 1, {kInt, kDyn}, kInt, same},
      {"int", false, 1, {kUint, kDyn}, kInt, int_of_uint},
      {"int", false, 1, {kDouble, kDyn}, kInt, int_of_double},
      {"int", false, 1, {kString, kDyn}, kInt, parse<std::int64_t>},
      {"int", false, 1, {kTimestamp, kDyn}, kInt, int_of_time},
      {"uint", false, 1, {kUint, kDyn}, kUint, same},
      {"uint", false, 1, {kInt, kDyn}, kUint, uint_of_int},
      {"uint", false, 1, {kDouble, kDyn}, kUint, uint_of_double},
      {"uint", false, 1, {kString, kDyn}, kUint, parse<std::uint64_t>},
      {"double", false, 1, {kDouble, kDyn}, kDouble, same},
      {"double", false, 1, {kInt, kDyn}, kDouble, double_of_int},
      {"double", false, 1, {kUint, kDyn}, kDouble, double_of_uint},
      {"double", false, 1, {kString, kDyn}, kDouble, parse<double>},
      {"string", false, 1, {kString, kDyn}, kString, same},
      {"string", false, 1, {kInt, kDyn}, kString, string_of_int},
      {"string", false, 1, {kUint, kDyn}, kString, string_of_uint},
      {"string", false, 1, {kDouble, kDyn}, kString, string_of_double},
      {"string", false, 1, {kBool, kDyn}, kString, string_of_bool},
      {"string", false, 1, {kBytes, kDyn}, kString, string_of_bytes},
      {"string", false, 1, {kTimestamp, kDyn}, kString, string_of_timestamp},
      {"string", false, 1, {kDuration, kDyn}, kString, string_of_duration},
      {"bytes", false, 1, {kBytes, kDyn}, kBytes, same},
      {"bytes", false, 1, {kString, kDyn}, kBytes, bytes_of_string},
      {"bool", false, 1, {kBool, kDyn}, kBool, same},
      {"bool", false, 1, {kString, kDyn}, kBool, bool_of_string},
      {"timestamp", false, 1, {kTimestamp, kDyn}, kTimestamp, same},
      {"timestamp", false, 1, {kString, kDyn}, kTimestamp, timestamp_of_string},
      {"timestamp", false, 1, {kInt, kDyn}, kTimestamp, timestamp_of_int},
      {"duration", false, 1, {kDuration, kDyn}, kDuration, same},
      {"duration", false, 1, {kString, kDyn}, kDuration, duration_of_string},
      {"type", false, 1, {kDyn, kDyn}, kType, type_of},
      {"dyn", false, 1, {kDyn, kDyn}, kDyn, same},
  };
  return table;
}

std::span<const Overload> find_overloads(std::string_view name, bool member) {
  for (const auto table :
       {arithmetic_overloads(), text_overloads(), conversion_overloads(), time_overloads()}) {
    const auto belongs = [&](const Overload &one) {
      return one.name == name && one.member == member;
    };
    const auto begin = std::find_if(table.begin(), table.end(), belongs);
    if (begin != table.end()) return {begin, std::find_if_not(begin, table.end(), belongs)};
  }
  return {};
}

}  // namespace bulkhead::cel
