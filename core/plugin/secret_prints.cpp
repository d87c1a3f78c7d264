#include "plugin/secret_prints.hpp"

#include <sodium.h>

#include <algorithm>
#include <cstring>

namespace bulkhead {
namespace {

constexpr std::size_t hash_bytes = 16;
constexpr std::string_view instead = "***";

std::string hash_of(std::string_view text, std::string_view key) {
  std::string out(hash_bytes, '\0');
  crypto_generichash(reinterpret_cast<unsigned char *>(out.data()), out.size(),
                     reinterpret_cast<const unsigned char *>(text.data()), text.size(),
                     reinterpret_cast<const unsigned char *>(key.data()), key.size());
  return out;
}

// Returns a 16-bit hash of 8 bytes.
std::uint16_t bits_of(const char *at, std::uint64_t factor) noexcept {
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, at, sizeof bytes);
  return static_cast<std::uint16_t>((bytes * factor) >> 48);
}

using Range = bh::Decoded::Range;

// Sorts ranges and merges overlapping ones.
std::vector<Range> merged(std::vector<Range> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const Range &a, const Range &b) { return a.begin < b.begin; });
  std::vector<Range> out;
  for (const Range &range : ranges) {
    if (!out.empty() && range.begin < out.back().end) {
      out.back().end = std::max(out.back().end, range.end);
    } else {
      out.push_back(range);
    }
  }
  return out;
}

}  // namespace

std::uint64_t SecretPrints::factor() const noexcept {
  std::uint64_t out = 0;
  std::memcpy(&out, key_.data(), std::min(sizeof out, key_.size()));
  return out | 1;
}

// Adds the value as it is, unescaped, and unescaped with '+' for spaces. The unescaped forms are
// needed because mask() unescapes text, and the value itself may contain characters that look like
// an escape sequence.
void SecretPrints::add(std::string_view value) {
  add_text(value);
  std::string plain = bh::Decoded::all_of(value, max_layers);
  add_text(plain);
  std::replace(plain.begin(), plain.end(), ' ', '+');  // HTML forms encode spaces as '+'
  add_text(plain);
}

void SecretPrints::add_text(std::string_view value) {
  if (value.size() < least_bytes || value.size() > most_bytes) return;
  if (prints_.size() >= max_prints) return;
  Print print;
  print.bytes = static_cast<std::uint32_t>(value.size());
  print.begin = bits_of(value.data(), factor());
  print.end = bits_of(value.data() + value.size() - end_bytes, factor());
  print.hash = hash_of(value, key_);
  const auto before = [](const Print &a, const Print &b) {
    return a.begin != b.begin ? a.begin < b.begin : a.bytes > b.bytes;
  };
  if (std::find(prints_.begin(), prints_.end(), print) != prints_.end()) return;
  prints_.insert(std::lower_bound(prints_.begin(), prints_.end(), print, before), print);
  note_begins();
}

void SecretPrints::note_begins() {
  begins_ = {};
  for (const Print &print : prints_) {
    begins_[print.begin / 64] |= std::uint64_t{1} << (print.begin % 64);
  }
}

// Returns the length of the longest known value at the start of the text, or 0 if there is none.
// Returns nullopt if more than *budget bytes would have to be hashed.
std::optional<std::size_t> SecretPrints::length_at(std::string_view text, std::uint16_t begin,
                                                   std::uint64_t *budget) const {
  auto at = std::lower_bound(prints_.begin(), prints_.end(), begin,
                             [](const Print &print, std::uint16_t b) { return print.begin < b; });
  const std::uint64_t step = factor();
  std::size_t hashed = 0;
  std::string hash;
  for (; at != prints_.end() && at->begin == begin; ++at) {
    // Compare the last bytes before hashing. Comparing only the first bytes is not enough: tokens
    // have known prefixes, and an attacker could repeat such a prefix to make this function compute
    // many hashes.
    if (at->bytes < end_bytes || at->bytes > text.size() ||
        bits_of(text.data() + at->bytes - end_bytes, step) != at->end) {
      continue;
    }
    if (at->bytes != hashed) {
      if (at->bytes > *budget) return std::nullopt;
      *budget -= at->bytes;
      hash = hash_of(text.substr(0, at->bytes), key_);
    }
    hashed = at->bytes;
    if (at->hash == hash) return hashed;
  }
  return 0;
}

// Finds values in the text and appends their ranges to *found. Returns false if more than *budget
// bytes would have to be hashed.
bool SecretPrints::find(std::string_view text, std::uint64_t *budget,
                        std::vector<Range> *found) const {
  const std::uint64_t step = factor();
  for (std::size_t at = 0; at + begin_bytes <= text.size(); ++at) {
    const std::uint16_t begin = bits_of(text.data() + at, step);
    if ((begins_[begin / 64] >> (begin % 64) & 1) == 0) continue;
    const auto length = length_at(text.substr(at), begin, budget);
    if (!length) return false;
    if (*length != 0) found->push_back({at, at + *length});
  }
  return true;
}

std::string SecretPrints::mask(std::string_view text, std::uint64_t *count) const {
  if (prints_.empty()) return std::string(text);
  std::uint64_t budget = hashed_at_least + hashed_per_byte * text.size();
  std::vector<Range> found;
  bool all = find(text, &budget, &found);
  std::vector<bh::Decoded> layers;
  while (all && layers.size() < max_layers) {
    const std::string_view above = layers.empty() ? text : layers.back().text();
    auto layer = bh::Decoded::of(above, bh::Decoded::Layer::both);
    if (!layer) break;
    layers.push_back(std::move(*layer));
    std::vector<Range> inside;
    all = find(layers.back().text(), &budget, &inside);
    for (Range range : inside) {
      for (auto outer = layers.rbegin(); outer != layers.rend(); ++outer) {
        range = outer->source(range.begin, range.end);
      }
      found.push_back(range);
    }
  }
  if (!all) {
    ++*count;
    return std::string(instead);
  }
  std::string out;
  std::size_t from = 0;  // text before this position has been copied or masked
  for (const Range &range : merged(std::move(found))) {
    out.append(text.substr(from, range.begin - from)).append(instead);
    from = range.end;
    ++*count;
  }
  return out.append(text.substr(from));
}

}  // namespace bulkhead
