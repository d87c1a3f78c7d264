#include "value.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "context.hpp"

namespace bulkhead::cel {

std::string_view kind_name(Kind kind) {
  static constexpr std::string_view names[] = {"error",
                                               "absent",
                                               "null_type",
                                               "bool",
                                               "int",
                                               "uint",
                                               "double",
                                               "string",
                                               "bytes",
                                               "list",
                                               "map",
                                               "google.protobuf.Timestamp",
                                               "google.protobuf.Duration",
                                               "type",
                                               "dyn"};
  return names[static_cast<std::size_t>(kind)];
}

void *Arena::allocate(std::size_t bytes) {
  constexpr std::size_t unit = alignof(std::max_align_t);
  if (bytes > max_bytes_) return nullptr;
  bytes = (bytes + unit - 1) / unit * unit;
  if (blocks_.empty() || blocks_.back().size - used_in_last_ < bytes) {
    const std::size_t size = std::max<std::size_t>(bytes, 4096);
    if (total_ + size > max_bytes_) return nullptr;
    blocks_.push_back({std::make_unique_for_overwrite<std::byte[]>(size), size});
    total_ += size;
    used_in_last_ = 0;
  }
  void *place = blocks_.back().bytes.get() + used_in_last_;
  used_in_last_ += bytes;
  return place;
}

void Arena::reset() {
  if (blocks_.size() > 1) blocks_.erase(blocks_.begin() + 1, blocks_.end());
  total_ = blocks_.empty() ? 0 : blocks_.front().size;
  used_in_last_ = 0;
}

namespace {

// A list or map created by an expression. A map is stored as key, value, key, value, and so on.
struct Made {
  const Value *values;
  std::size_t count;
};

class MadeList final : public ListAccess {
 public:
  std::size_t size(const void *object) const override { return made(object).count; }
  Value at(const void *object, std::size_t index) const override {
    return made(object).values[index];
  }
  static const Made &made(const void *object) { return *static_cast<const Made *>(object); }
};

class MadeMap final : public MapAccess {
 public:
  std::size_t size(const void *object) const override { return MadeList::made(object).count; }
  Value key(const void *object, std::size_t index) const override {
    return MadeList::made(object).values[2 * index];
  }
  Value value(const void *object, std::size_t index) const override {
    return MadeList::made(object).values[2 * index + 1];
  }
  bool find(Context &context, const void *object, const Value &wanted,
            Value *found) const override {
    const Made &made = MadeList::made(object);
    for (std::size_t i = 0; i < made.count; ++i) {
      if (!equal(context, made.values[2 * i], wanted)) continue;
      *found = made.values[2 * i + 1];
      return true;
    }
    return false;
  }
};

constexpr MadeList made_list;
constexpr MadeMap made_map;

template <class T>
Order order_of(const T &a, const T &b) {
  return a < b ? kLess : b < a ? kGreater : kSame;
}

// Compares an integer with a double exactly, even if no double can represent the integer.
template <class Integer>
Order order_with_double(Integer a, double b) {
  if (std::isnan(b)) return kUnordered;
  constexpr double above = sizeof(Integer) == 8 && std::is_signed_v<Integer> ? 0x1p63 : 0x1p64;
  constexpr double below = std::is_signed_v<Integer> ? -0x1p63 : 0.0;
  if (b >= above) return kLess;
  if (b < below) return kGreater;
  const double whole = std::floor(b);
  const Order floor_order = order_of(a, static_cast<Integer>(whole));
  return floor_order == kSame && whole < b ? kLess : floor_order;
}

Order reverse(Order order) {
  return order == kLess ? kGreater : order == kGreater ? kLess : order;
}

Order number_order(const Value &a, const Value &b) {
  if (a.is(Kind::kDouble)) {
    if (b.is(Kind::kDouble)) {
      if (std::isnan(a.as_double()) || std::isnan(b.as_double())) return kUnordered;
      return order_of(a.as_double(), b.as_double());
    }
    return reverse(number_order(b, a));
  }
  if (b.is(Kind::kDouble)) {
    return a.is(Kind::kInt) ? order_with_double(a.as_int(), b.as_double())
                            : order_with_double(a.as_uint(), b.as_double());
  }
  if (a.kind() == b.kind()) {
    return a.is(Kind::kInt) ? order_of(a.as_int(), b.as_int()) : order_of(a.as_uint(), b.as_uint());
  }
  if (a.is(Kind::kUint)) return reverse(number_order(b, a));
  if (std::cmp_less(a.as_int(), b.as_uint())) return kLess;
  return std::cmp_equal(a.as_int(), b.as_uint()) ? kSame : kGreater;
}

bool equal_lists(Context &context, const Value &a, const Value &b, unsigned depth) {
  const std::size_t size = a.list_size();
  if (size != b.list_size()) return false;
  for (std::size_t i = 0; i < size; ++i) {
    if (!equal(context, a.at(i), b.at(i), depth)) return false;
  }
  return true;
}

bool equal_maps(Context &context, const Value &a, const Value &b, unsigned depth) {
  const std::size_t size = a.map_size();
  if (size != b.map_size()) return false;
  for (std::size_t i = 0; i < size; ++i) {
    Value other;
    if (!context.charge(1 + size / 4) || !b.find(context, a.key(i), &other)) return false;
    if (!equal(context, a.entry(i), other, depth)) return false;
  }
  return true;
}

}  // namespace

char *Context::text_room(std::size_t bytes) {
  void *room = arena_.allocate(bytes);
  if (!room) stop("the evaluation exceeds its memory limit");
  return static_cast<char *>(room);
}

Value *Context::value_room(std::size_t count) {
  constexpr std::size_t most = ~std::size_t{0} / sizeof(Value) / 2;
  void *room = count < most ? arena_.allocate(count * sizeof(Value)) : nullptr;
  if (!room) stop("the evaluation exceeds its memory limit");
  return static_cast<Value *>(room);
}

Value Context::copy_string(std::string_view text, Kind kind) {
  char *room = text_room(text.size());
  if (!room) return Value::error("the evaluation exceeds its memory limit");
  if (!text.empty()) std::memcpy(room, text.data(), text.size());
  return kind == Kind::kBytes ? Value::bytes({room, text.size()})
                              : Value::string({room, text.size()});
}

Value Context::make_list(const Value *values, std::size_t count) {
  void *room = text_room(sizeof(Made));
  if (!room) return Value::error("the evaluation exceeds its memory limit");
  return Value::list(made_list, new (room) Made{values, count});
}

Value Context::make_map(const Value *pairs, std::size_t count) {
  void *room = text_room(sizeof(Made));
  if (!room) return Value::error("the evaluation exceeds its memory limit");
  return Value::map(made_map, new (room) Made{pairs, count});
}

bool equal(Context &context, const Value &a, const Value &b, unsigned depth) {
  constexpr unsigned max_depth = 256;
  if (depth > max_depth) context.stop("values are nested too deeply to be compared");
  if (!context.charge(1)) return false;
  if (a.is_number() && b.is_number()) return number_order(a, b) == kSame;
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::kNull:
      return true;
    case Kind::kBool:
      return a.as_bool() == b.as_bool();
    case Kind::kString:
    case Kind::kBytes:
      if (a.text().size() != b.text().size()) return false;
      return context.charge_text(a.text().size()) && a.text() == b.text();
    case Kind::kTimestamp:
    case Kind::kDuration:
      return a.time() == b.time();
    case Kind::kType:
      return a.as_type() == b.as_type();
    case Kind::kList:
      return equal_lists(context, a, b, depth + 1);
    case Kind::kMap:
      return equal_maps(context, a, b, depth + 1);
    default:
      return false;
  }
}

Order order(Context &context, const Value &a, const Value &b) {
  if (a.is_number() && b.is_number()) return number_order(a, b);
  if (a.kind() != b.kind()) return kIncomparable;
  switch (a.kind()) {
    case Kind::kBool:
      return order_of(a.as_bool(), b.as_bool());
    case Kind::kString:
    case Kind::kBytes:
      if (!context.charge_text(2 * std::min(a.text().size(), b.text().size())))
        return kIncomparable;
      return order_of(a.text(), b.text());
    case Kind::kTimestamp:
    case Kind::kDuration:
      return order_of(a.time(), b.time());
    default:
      return kIncomparable;
  }
}

}  // namespace bulkhead::cel
