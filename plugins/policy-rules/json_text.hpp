// Parses one JSON document of a call into a tree. Memory is reused for the next document. Not
// thread-safe.
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
  // Maximum number of values in one document. A value takes up to 80 bytes during parsing.
  static constexpr std::size_t kMaxValues = std::size_t{8} << 20;
  static constexpr std::size_t kKeptBytes = std::size_t{64} << 10;

  JsonText();

  // Parses a document. Returns nullptr on success. Otherwise returns the error ("not valid JSON",
  // "an object has a duplicate member", "nested too deeply" or "more than 8,388,608 values"), and
  // value() is null.
  const char *parse(std::string_view text);
  const rapidjson::Value &value() const;
  // Releases the tree, but keeps up to kKeptBytes of memory for reuse.
  void clear();

 private:
  using Document = rapidjson::GenericDocument<rapidjson::UTF8<>, rapidjson::MemoryPoolAllocator<>,
                                              rapidjson::MemoryPoolAllocator<>>;

  std::vector<char> text_;  // the parsed buffer, which contains the strings of the tree
  std::unique_ptr<char[]> memory_, stack_memory_;
  rapidjson::MemoryPoolAllocator<> pool_, stack_;
  std::optional<Document> document_;
};

// Returns a member, or nullptr if the member is missing or `object` is not an object.
const rapidjson::Value *member(const rapidjson::Value &object, std::string_view name);
std::string_view text_of(const rapidjson::Value &string);

}  // namespace bulkhead::rules
