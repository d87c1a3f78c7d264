#include "common/suggestion.hpp"

#include <algorithm>

#include "bulkhead/cpp/text.hpp"
#include "common/text.hpp"
#include "profile/diagnostics.hpp"

namespace bulkhead::program {
namespace {

constexpr std::size_t max_names = 3, min_word = 2;

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> out(1);
  for (const char c : bh::lowered(text)) {
    if (bh::is_letter_or_digit(c) || static_cast<unsigned char>(c) >= 0x80) {
      out.back() += c;
    } else if (!out.back().empty()) {
      out.emplace_back();
    }
  }
  std::erase_if(out, [](const std::string &word) { return word.size() < min_word; });
  return out;
}

// Returns true if two adjacent characters of one name are exchanged in the other. In a short name,
// profiles::nearest() counts this as two errors.
bool is_transposed(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  std::size_t i = 0;
  while (i < a.size() && a[i] == b[i]) ++i;
  return i + 1 < a.size() && a[i] == b[i + 1] && a[i + 1] == b[i] &&
         a.substr(i + 2) == b.substr(i + 2);
}

}  // namespace

std::vector<std::string> similar_names(std::string_view typed,
                                       const std::vector<std::string> &names) {
  const std::vector<std::string_view> views(names.begin(), names.end());
  std::vector<std::string> out;
  if (const std::string_view nearest = profiles::nearest(typed, views); !nearest.empty()) {
    out.emplace_back(nearest);
  } else {
    const std::string lowered = bh::lowered(typed);
    const auto at = std::find_if(names.begin(), names.end(), [&](const std::string &name) {
      return is_transposed(lowered, bh::lowered(name));
    });
    if (at != names.end()) out.push_back(*at);
  }
  const std::vector<std::string> words = words_of(typed);
  if (words.empty()) return out;
  for (const std::string &name : names) {
    if (out.size() == max_names) break;
    const std::string candidate = bh::lowered(name);
    const bool has_all = std::all_of(words.begin(), words.end(), [&](const std::string &word) {
      return candidate.find(word) != std::string::npos;
    });
    if (has_all && std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
  }
  return out;
}

std::string suggestion(std::string_view typed, const std::vector<std::string> &names) {
  const std::vector<std::string> similar = similar_names(typed, names);
  std::string out;
  for (std::size_t i = 0; i < similar.size(); ++i) {
    out += i == 0 ? "" : i + 1 < similar.size() ? ", " : " or ";
    out += '"' + printable(similar[i]) + '"';
  }
  return out.empty() ? out : "did you mean " + out + "?";
}

}  // namespace bulkhead::program
