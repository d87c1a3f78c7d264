#include "profile/diagnostics.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <tuple>

#include "bulkhead/cpp/text.hpp"

namespace bulkhead {

std::string to_string(const ProfileError &error) {
  std::string out = error.file;
  if (error.line > 0) {
    out += ':' + std::to_string(error.line);
    if (error.column > 0) out += ':' + std::to_string(error.column);
  }
  if (!out.empty()) out += ": ";
  if (!error.path.empty()) out += error.path + ": ";
  out += error.what;
  if (!error.code.empty()) out += " [" + error.code + "]";
  return out;
}

}  // namespace bulkhead

namespace bulkhead::profiles {

namespace {

constexpr std::size_t kWordBytes = 80;  // longer words are not compared with known words
constexpr std::size_t kNotes = 200;

// Returns the Levenshtein distance, ignoring case. The caller must limit the length of both words.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      const std::size_t change = diagonal + (bh::lower(a[i - 1]) == bh::lower(b[j - 1]) ? 0 : 1);
      row[j] = std::min({above + 1, row[j - 1] + 1, change});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::string list(std::span<const std::string_view> words) {
  std::string out;
  for (const std::string_view word : words) {
    if (!out.empty()) out += ", ";
    out += word;
  }
  return out;
}

std::optional<std::uint64_t> whole_number(const std::string &text) {
  std::uint64_t value = 0;
  const char *end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

}  // namespace

std::string printable(std::string_view text, std::size_t most) {
  std::string out = bh::printable(bh::cut_text(text, most));
  if (text.size() > most) out += "...";
  return out;
}

std::string in_quotes(std::string_view text) {
  return '"' + printable(text) + '"';
}

std::string join(const std::string &path, std::string_view name, std::size_t most) {
  const bool plain = !name.empty() && name.find_first_of(". \"") == std::string_view::npos;
  std::string out = path;
  if (!out.empty()) out += '.';
  return out += plain ? printable(name, most) : '"' + printable(name, most) + '"';
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> known) {
  if (word.empty() || word.size() > kWordBytes) return {};
  std::size_t best = std::max<std::size_t>(1, std::min<std::size_t>(3, word.size() / 3)) + 1;
  std::string_view found;
  for (const std::string_view candidate : known) {
    const std::size_t d = distance(word, candidate);
    if (d < best) {
      best = d;
      found = candidate;
    }
  }
  return found;
}

std::string_view word_of(std::span<const Word> words, int value) {
  for (const Word &word : words)
    if (word.value == value) return word.text;
  return {};
}

void Diagnostics::error(const Place &place, std::string path, std::string what,
                        std::string_view code) {
  if (errors_.size() >= kProfileErrors) return;
  ProfileError error;
  const Origin from = origin(place);
  error.file = from.file.empty() ? from.layer : from.file;
  error.line = place.line;
  error.column = place.column;
  error.path = std::move(path);
  error.what = std::move(what);
  error.code = code;
  errors_.push_back({place, errors_.size(), std::move(error)});
}

void Diagnostics::unknown_key(const Member &member, const std::string &path,
                              std::span<const std::string_view> known) {
  if (errors_.size() >= kProfileErrors) return;  // checked first because the search is slow
  std::string what = "unknown key " + in_quotes(member.name);
  const std::string_view near = nearest(member.name, known);
  if (!near.empty()) what += "; did you mean \"" + std::string(near) + "\"?";
  what += (near.empty() ? ". Known keys: " : " Known keys: ") + list(known);
  error(member.place, join(path, member.name), std::move(what), kUnknownKey);
}

void Diagnostics::note(const Place &place, std::string_view text) {
  if (notes_.size() >= kNotes) return;
  const Origin from = origin(place);
  std::string out = from.file.empty() ? from.layer : from.file;
  if (place.line > 0) out += ':' + std::to_string(place.line);
  if (!out.empty()) out += ": ";
  notes_.push_back(out.append(text));
}

void Diagnostics::wrong_kind(const Node &node, const std::string &path, std::string_view needed) {
  error(node.place, path,
        "expected " + std::string(needed) + ", found " + std::string(to_string(node.kind)));
}

std::optional<std::string> Diagnostics::string(const Node &node, const std::string &path) {
  if (node.kind == Kind::string) {
    if (node.text.find('\0') == std::string::npos) return node.text;
    error(node.place, path, "the string contains a NUL character");
    return std::nullopt;
  }
  const bool scalar = node.kind == Kind::number || node.kind == Kind::boolean;
  wrong_kind(node, path, scalar ? "a string (put it in quotes)" : "a string");
  return std::nullopt;
}

std::optional<bool> Diagnostics::boolean(const Node &node, const std::string &path) {
  if (node.kind == Kind::boolean) return node.flag;
  wrong_kind(node, path, "true or false (without quotes)");
  return std::nullopt;
}

std::optional<std::uint64_t> Diagnostics::integer(const Node &node, const std::string &path,
                                                  std::uint64_t least, std::uint64_t most) {
  const std::string range =
      "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
  if (node.kind != Kind::number) {
    wrong_kind(node, path, range);
    return std::nullopt;
  }
  const auto value = whole_number(node.text);
  if (value && *value >= least && *value <= most) return value;
  error(node.place, path, "expected " + range + ", found " + printable(node.text));
  return std::nullopt;
}

std::optional<std::vector<std::string>> Diagnostics::strings(const Node &node,
                                                             const std::string &path) {
  if (node.kind != Kind::array) {
    wrong_kind(node, path, "an array of strings");
    return std::nullopt;
  }
  std::vector<std::string> out;
  bool good = true;
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    auto text = string(node.items[i], path + '[' + std::to_string(i) + ']');
    if (text)
      out.push_back(std::move(*text));
    else
      good = false;
  }
  if (!good) return std::nullopt;
  return out;
}

bool Diagnostics::is_table(const Node &node, const std::string &path) {
  if (node.kind == Kind::table) return true;
  wrong_kind(node, path, "a table");
  return false;
}

std::optional<int> Diagnostics::one_of(const Node &node, const std::string &path,
                                       std::span<const Word> allowed) {
  const auto text = string(node, path);
  if (!text) return std::nullopt;
  std::vector<std::string_view> words;
  for (const Word &word : allowed) {
    if (*text == word.text) return word.value;
    words.push_back(word.text);
  }
  error(node.place, path, "unknown value " + in_quotes(*text) + "; allowed: " + list(words));
  return std::nullopt;
}

Origin Diagnostics::origin(const Place &place) const {
  if (place.layer >= layers_.size()) return {};
  return {layers_[place.layer].name, layers_[place.layer].file, place.line};
}

bool Diagnostics::corp(const Place &place) const {
  return place.layer < layers_.size() && layers_[place.layer].corp;
}

bool Diagnostics::lenient(const Place &place) const {
  return place.layer < layers_.size() && layers_[place.layer].lenient;
}

std::string Diagnostics::retract_errors(std::size_t kept) {
  const ProfileError &first = errors_[kept].error;
  std::string text = first.path + ": " + first.what;
  errors_.resize(kept);
  return text;
}

std::vector<ProfileError> Diagnostics::take_errors() {
  std::sort(errors_.begin(), errors_.end(), [](const Entry &a, const Entry &b) {
    return std::tie(a.place.layer, a.place.line, a.place.column, a.number) <
           std::tie(b.place.layer, b.place.line, b.place.column, b.number);
  });
  std::vector<ProfileError> out;
  for (Entry &entry : errors_) out.push_back(std::move(entry.error));
  errors_.clear();
  return out;
}

}  // namespace bulkhead::profiles
