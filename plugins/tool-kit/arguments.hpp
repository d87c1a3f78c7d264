// Parses the `arguments` of a tool call (or a flat configuration): named scalars and arrays of
// strings. Checks types and ranges. The first error is kept as a message for the caller of the
// tool.
//
// An object may be used on any thread, but by only one thread at a time. Throws only
// std::bad_alloc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tool_kit {

class Arguments {
 public:
  // `json` is an untrusted object, or empty if there are no arguments. Its size is limited by the
  // maximum message size.
  explicit Arguments(std::string_view json);

  // Each getter returns the fallback if the argument is missing or null. If the argument is
  // invalid, the getter stores an error, and its result must be ignored.
  std::string text(std::string_view name, std::string_view fallback = {});
  std::uint64_t whole(std::string_view name, std::uint64_t fallback, std::uint64_t min,
                      std::uint64_t max);
  bool flag(std::string_view name, bool fallback);
  // Returns one of the choices. The fallback is the first choice.
  std::string choice(std::string_view name, const std::vector<std::string_view> &choices);
  // Returns an array of strings, or an empty array if the argument is missing.
  std::vector<std::string> texts(std::string_view name);
  bool has(std::string_view name);

  // Returns the first error, or an empty string if there is none. Must be called after all getters,
  // because arguments that no getter has read are reported as unknown.
  const std::string &problem();

 private:
  enum class Type : std::uint8_t { null, flag, number, text, texts, other };
  struct Argument {
    std::string name;
    Type type;
    std::string text;  // a string, a number as written, or "true" or "false"
    std::vector<std::string> texts{};
  };

  const Argument *find(std::string_view name);
  void wrong(std::string sentence);

  std::vector<Argument> arguments_;
  std::vector<std::string> asked_;
  std::string problem_;
};

}  // namespace tool_kit
