// Collects the errors and notes that occur while a profile is loaded, and reads typed values.
// Internal to the profile libraries.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "profile/layer.hpp"
#include "profile/tree.hpp"

namespace bulkhead::profiles {

inline constexpr std::string_view kInvalidSchema = "invalid_schema";
inline constexpr std::string_view kUnknownKey = "unknown_key";
inline constexpr std::string_view kLocked = "locked";
inline constexpr std::string_view kForbidden = "forbidden";
inline constexpr std::string_view kMissingVariable = "missing_env_var";

// Formats text for one terminal line: unprintable characters (bh::is_unprintable()) and invalid
// UTF-8 become '?', and text longer than `most` bytes is truncated and followed by "...".
std::string printable(std::string_view text, std::size_t most = 80);
// Returns the printable() text in double quotes.
std::string in_quotes(std::string_view text);

// Returns the known word that is most similar to `word`, ignoring case. Returns an empty view if no
// word is similar.
std::string_view nearest(std::string_view word, std::span<const std::string_view> known);

// A string that is allowed as a key's value, and the number that it represents.
struct Word {
  std::string_view text;
  int value;
};
// Returns the string for a value, or an empty string if there is none.
std::string_view word_of(std::span<const Word> words, int value);

class Diagnostics {
 public:
  explicit Diagnostics(const std::vector<ProfileLayer> &layers) : layers_(layers) {}

  // Records an error. If kProfileErrors errors have already been recorded, the new error is
  // dropped.
  void error(const Place &place, std::string path, std::string what,
             std::string_view code = kInvalidSchema);
  // Records an error for an unknown key. The message lists the known keys.
  void unknown_key(const Member &member, const std::string &path,
                   std::span<const std::string_view> known);
  void note(const Place &place, std::string_view text);

  // Typed readers. Each returns the value of `node`. If the node has another type, a number is out
  // of range or a string contains a NUL character, the reader records an error and returns nullopt
  // (is_table(): false).
  std::optional<std::string> string(const Node &node, const std::string &path);
  std::optional<bool> boolean(const Node &node, const std::string &path);
  std::optional<std::uint64_t> integer(const Node &node, const std::string &path,
                                       std::uint64_t least, std::uint64_t most);
  std::optional<std::vector<std::string>> strings(const Node &node, const std::string &path);
  bool is_table(const Node &node, const std::string &path);
  // Returns the number that the string in `node` represents. If the string is not allowed, records
  // an error that lists the allowed strings.
  std::optional<int> one_of(const Node &node, const std::string &path,
                            std::span<const Word> allowed);

  Origin origin(const Place &place) const;
  bool failed() const noexcept { return !errors_.empty(); }
  std::size_t count() const noexcept { return errors_.size(); }
  // Returns true if `place` is in a lenient layer (ProfileLayer::lenient).
  bool lenient(const Place &place) const;
  // Returns true if `place` is in the corporation's layer.
  bool corp(const Place &place) const;
  // Removes all errors except the first `kept` and returns the text of the first removed error.
  // There must be more than `kept` errors.
  std::string retract_errors(std::size_t kept);
  std::vector<ProfileError> take_errors();  // sorted by layer and location
  std::vector<std::string> take_notes() { return std::move(notes_); }

 private:
  void wrong_kind(const Node &node, const std::string &path, std::string_view needed);

  struct Entry {
    Place place;
    std::size_t number;  // position in the order in which errors were recorded
    ProfileError error;
  };
  const std::vector<ProfileLayer> &layers_;
  std::vector<Entry> errors_;
  std::vector<std::string> notes_;
};

// Appends a name to a path: "a" and "b" become "a.b". Ambiguous names are quoted. `most` is as in
// printable().
std::string join(const std::string &path, std::string_view name, std::size_t most = 80);

}  // namespace bulkhead::profiles
