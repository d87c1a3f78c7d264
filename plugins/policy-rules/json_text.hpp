// A JSON text of a call as a tree, parsed at most once per question into memory that is used again.
// Thread: one at a time.
#pragma once

#include <rapidjson/document.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace bulkhead::rules {

class JsonText {
 public:
  static constexpr unsigned kMaxDepth = 128;
  // Values of one text; as a tree they take up to 80 bytes each while they are read.
  static constexpr std::size_t kMostValues = std::size_t{8} << 20;
  static constexpr std::size_t kKeptBytes = std::size_t{64} << 10;

  JsonText();

  // nullptr: parsed. Else why not ("not valid JSON", "an object has the same member twice",
  // "nests too deeply", "has more than 8,388,608 values"), which is a refusal; value() is then
  // null.
  const char *parse(std::string_view text);
  const rapidjson::Value &value() const;
  // What was parsed is gone; its memory stays, but for what was beyond kKeptBytes.
  void clear();

 private:
  using Document = rapidjson::GenericDocument<rapidjson::UTF8<>, rapidjson::MemoryPoolAllocator<>,
                                              rapidjson::MemoryPoolAllocator<>>;

  std::vector<char> text_;  // parsed in place: strings of the tree lie in it
  std::unique_ptr<char[]> memory_, stack_memory_;
  rapidjson::MemoryPoolAllocator<> pool_, stack_;
  std::optional<Document> document_;
};

// The member, or nullptr; `object` may be anything.
const rapidjson::Value *member(const rapidjson::Value &object, std::string_view name);
std::string_view text_of(const rapidjson::Value &string);

}  // namespace bulkhead::rules
