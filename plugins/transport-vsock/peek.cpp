#include "transport-vsock/peek.hpp"

#include <rapidjson/reader.h>
#include <bulkhead/cpp/basics.hpp>
#include <bulkhead/cpp/json_writer.hpp>

namespace transport_vsock {
namespace {

using rapidjson::SizeType;

constexpr std::size_t max_id = 1'024;

// Collects the top-level members of a message, and params.version.
class Top : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, Top> {
 public:
  bool object = false, has_id = false, has_method = false;
  bool version_one = false;
  std::string method, id;

  bool StartObject() {
    if (depth_ == 0) object = true;
    return enter();
  }
  bool StartArray() { return depth_ > 0 && enter(); }
  bool EndObject(SizeType) { return leave(); }
  bool EndArray(SizeType) { return leave(); }
  bool Key(const char *text, SizeType n, bool) {
    if (depth_ > 2) return true;
    (depth_ == 1 ? key_ : inner_key_).assign(text, n);
    has_id = has_id || (depth_ == 1 && key_ == "id");
    has_method = has_method || (depth_ == 1 && key_ == "method");
    return true;
  }
  bool String(const char *text, SizeType n, bool) {
    if (depth_ == 1 && key_ == "method") method.assign(text, n);
    if (depth_ == 1 && key_ == "id" && n <= max_id) {
      id = bh::json::quoted({text, n});
    }
    return depth_ > 0;
  }
  bool RawNumber(const char *text, SizeType n, bool) {
    const std::string_view number(text, n);
    if (depth_ == 1 && key_ == "id" && n <= max_id) id = number;
    if (depth_ == 2 && key_ == "params" && inner_key_ == "version") version_one = number == "1";
    return depth_ > 0;
  }
  bool Default() { return depth_ > 0; }

 private:
  bool enter() {
    ++depth_;
    return true;
  }
  bool leave() {
    --depth_;
    return true;
  }
  std::size_t depth_ = 0;
  std::string key_, inner_key_;
};

constexpr unsigned flags = rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag |
                           rapidjson::kParseNumbersAsStringsFlag;

bool read_top(std::string_view message, Top *top) {
  rapidjson::MemoryStream stream(message.data(), message.size());
  rapidjson::Reader reader;
  return !reader.Parse<flags>(stream, *top).IsError() && top->object;
}

}  // namespace

Envelope peek(std::string_view message) {
  Top top;
  if (!read_top(message, &top)) return Envelope::unreadable;
  if (!top.has_method) return top.has_id ? Envelope::response : Envelope::unreadable;
  if (top.has_id) return Envelope::request;
  const bool duplex = top.method == duplex_method && top.version_one;
  return duplex ? Envelope::duplex : Envelope::notification;
}

bool expects_response(std::string_view message) {
  const Envelope kind = peek(message);
  return kind == Envelope::request || kind == Envelope::unreadable;
}

std::string id_of(std::span<const bh_str> parts) {
  std::string message;
  for (const bh_str &part : parts) message += bh::view(part);
  Top top;
  return read_top(message, &top) ? top.id : std::string();
}

}  // namespace transport_vsock
