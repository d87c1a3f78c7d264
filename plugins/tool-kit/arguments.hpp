// Parses the `arguments` of a tool call (or a flat configuration): named scalars and arrays of
// strings, with type and range checks. The first error is kept as a sentence for the caller of the
// tool.
//
// Thread: any, one at a time. Exceptions: std::bad_alloc only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tool_kit {

class Arguments {
 public:
  // json: an object, or empty for no arguments. Untrusted; its size is limited by the message.
  explicit Arguments(std::string_view json);

  // Each getter returns the fallback if the argument is absent or null, and records an error if it
  // is invalid.
  std::string text(std::string_view name, std::string_view fallback = {});
  std::uint64_t whole(std::string_view name, std::uint64_t fallback, std::uint64_t min,
                      std::uint64_t max);
  bool flag(std::string_view name, bool fallback);
  // One of the choices; the first is the fallback.
  std::string choice(std::string_view name, const std::vector<std::string_view> &choices);
  // An array of strings; empty if it is absent.
  std::vector<std::string> texts(std::string_view name);
  bool has(std::string_view name);

  // Call after all getters: arguments that were not read are unknown and an error. Empty: no error.
  const std::string &problem();

 private:
  enum class Type : std::uint8_t { null, flag, number, text, texts, other };
  struct Argument {
    std::string name;
    Type type;
    std::string text;  // of a number: its source text; of a flag: "true" or "false"
    std::vector<std::string> texts{};
  };

  const Argument *find(std::string_view name);
  void wrong(std::string sentence);

  std::vector<Argument> arguments_;
  std::vector<std::string> asked_;
  std::string problem_;
};

}  // namespace tool_kit
