#include "plugin/secret_prints.hpp"

#include <sodium.h>

#include <algorithm>
#include <cstdio>
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

// Of the 8 bytes there.
std::uint16_t bits_of(const char *at, std::uint64_t factor) noexcept {
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, at, sizeof bytes);
  return static_cast<std::uint16_t>((bytes * factor) >> 48);
}

// What JSON writers in use write as escapes though they need not: PHP the slash, Go and .NET what
// means something in HTML (in small and in large hex digits), .NET the plus sign and some more.
struct Writer {
  std::string_view escapes;  // as \u....
  bool large = false;        // hex digits
  bool slash = false;        // as \/
};
constexpr Writer writers[] = {
    {}, {{}, false, true}, {"&<>", false, false}, {"&<>", true, false}, {"&<>+'`\"", true, false}};

std::string escaped(std::string_view value, const Writer &writer) {
  std::string out;
  for (const char c : value) {
    const bool control = static_cast<unsigned char>(c) < 0x20;
    if (c == '\n' || c == '\t' || c == '\r') {
      out += c == '\n' ? "\\n" : c == '\t' ? "\\t" : "\\r";
    } else if (control || writer.escapes.find(c) != std::string_view::npos) {
      char text[8];
      std::snprintf(text, sizeof text, writer.large ? "\\u%04X" : "\\u%04x",
                    static_cast<unsigned>(static_cast<unsigned char>(c)));
      out += text;
    } else {
      if (c == '"' || c == '\\' || (c == '/' && writer.slash)) out += '\\';
      out += c;
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

void SecretPrints::add(std::string_view value) {
  add_text(value);
  for (const Writer &writer : writers) add_text(escaped(value, writer));
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

// The length of the longest of them that the text begins with; 0: none. nullopt: more would have to
// be hashed than *budget bytes.
std::optional<std::size_t> SecretPrints::length_at(std::string_view text, std::uint16_t begin,
                                                   std::uint64_t *budget) const {
  auto at = std::lower_bound(prints_.begin(), prints_.end(), begin,
                             [](const Print &print, std::uint16_t b) { return print.begin < b; });
  const std::uint64_t step = factor();
  std::size_t hashed = 0;
  std::string hash;
  for (; at != prints_.end() && at->begin == begin; ++at) {
    // Many tokens begin alike, and anybody can write what they begin with.
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

std::string SecretPrints::mask(std::string_view text, std::uint64_t *count) const {
  std::string out;
  std::size_t from = 0;  // what lies before is in `out`, or masked
  const std::uint64_t step = factor();
  std::uint64_t budget = hashed_at_least + hashed_per_byte * text.size(), found = 0;
  for (std::size_t at = 0; at + begin_bytes <= text.size() && !prints_.empty(); ++at) {
    const std::uint16_t begin = bits_of(text.data() + at, step);
    if ((begins_[begin / 64] >> (begin % 64) & 1) == 0) continue;
    const auto length = length_at(text.substr(at), begin, &budget);
    if (!length) {
      ++*count;
      return std::string(instead);
    }
    if (*length == 0) continue;
    if (at >= from) {
      out.append(text.substr(from, at - from)).append(instead);
      ++found;
    }
    from = std::max(from, at + *length);  // they may overlap
  }
  *count += found;
  return out.append(text.substr(from));
}

}  // namespace bulkhead
