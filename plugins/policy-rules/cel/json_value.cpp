#include "json_value.hpp"

#include <cstring>

#include "context.hpp"

namespace bulkhead::cel {
namespace {

const rapidjson::Value &json_of(const void *object) {
  return *static_cast<const rapidjson::Value *>(object);
}

std::string_view text_of(const rapidjson::Value &json) {
  return {json.GetString(), json.GetStringLength()};
}

class JsonArray final : public ListAccess {
 public:
  std::size_t size(const void *object) const override { return json_of(object).Size(); }
  Value at(const void *object, std::size_t index) const override {
    return json_value(json_of(object)[static_cast<rapidjson::SizeType>(index)]);
  }
};

class JsonObject final : public MapAccess {
 public:
  std::size_t size(const void *object) const override { return json_of(object).MemberCount(); }
  Value key(const void *object, std::size_t index) const override {
    return Value::string(text_of(member(object, index)->name));
  }
  Value value(const void *object, std::size_t index) const override {
    return json_value(member(object, index)->value);
  }
  bool find(Context &context, const void *object, const Value &wanted,
            Value *found) const override {
    if (!wanted.is(Kind::kString)) return false;
    const rapidjson::Value &json = json_of(object);
    const std::string_view text = wanted.text();
    for (auto it = json.MemberBegin(); it != json.MemberEnd(); ++it) {
      // Keys of a different length are not compared, so they are not charged.
      if (it->name.GetStringLength() != text.size()) continue;
      if (!context.charge_text(text.size())) return false;
      if (text_of(it->name) != text) continue;
      *found = json_value(it->value);
      return true;
    }
    return false;
  }

 private:
  static rapidjson::Value::ConstMemberIterator member(const void *object, std::size_t index) {
    return json_of(object).MemberBegin() + static_cast<std::ptrdiff_t>(index);
  }
};

constexpr JsonArray json_array;
constexpr JsonObject json_object;

}  // namespace

Value json_value(const rapidjson::Value &json) {
  switch (json.GetType()) {
    case rapidjson::kNullType:
      return Value::null();
    case rapidjson::kFalseType:
      return Value::of(false);
    case rapidjson::kTrueType:
      return Value::of(true);
    case rapidjson::kStringType:
      return Value::string(text_of(json));
    case rapidjson::kArrayType:
      return Value::list(json_array, &json);
    case rapidjson::kObjectType:
      return Value::map(json_object, &json);
    default:
      if (json.IsInt64()) return Value::of(json.GetInt64());
      if (json.IsUint64()) return Value::of(json.GetUint64());
      return Value::of(json.GetDouble());
  }
}

}  // namespace bulkhead::cel
