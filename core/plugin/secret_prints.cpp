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
std::uint16_t begin_of(const char *at, std::uint64_t factor) noexcept {
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, at, sizeof bytes);
  return static_cast<std::uint16_t>((bytes * factor) >> 52);
}

// As JSON writes it, without what it need not escape.
std::string escaped(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '"' || c == '\\') {
      out.append({'\\', c});
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char text[8];
      std::snprintf(text, sizeof text, "\\u%04x", static_cast<unsigned>(c));
      out += c == '\n' ? "\\n" : c == '\t' ? "\\t" : c == '\r' ? "\\r" : text;
    } else {
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
  const std::string json = escaped(value);
  if (json != value) add_text(json);
}

void SecretPrints::add_text(std::string_view value) {
  if (value.size() < least_bytes || value.size() > most_bytes) return;
  if (prints_.size() >= max_values) return;
  Print print;
  print.bytes = static_cast<std::uint32_t>(value.size());
  print.begin = begin_of(value.data(), factor());
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
    begins_[print.begin / 64 % begins_.size()] |= std::uint64_t{1} << (print.begin % 64);
  }
}

// The length of the longest of them that the text begins with; 0: none.
std::size_t SecretPrints::length_at(std::string_view text, std::uint16_t begin) const {
  auto at = std::lower_bound(prints_.begin(), prints_.end(), begin,
                             [](const Print &print, std::uint16_t b) { return print.begin < b; });
  std::size_t hashed = 0;
  std::string hash;
  for (; at != prints_.end() && at->begin == begin; ++at) {
    if (at->bytes > text.size()) continue;
    if (at->bytes != hashed) hash = hash_of(text.substr(0, at->bytes), key_);
    hashed = at->bytes;
    if (at->hash == hash) return hashed;
  }
  return 0;
}

std::string SecretPrints::mask(std::string_view text, std::uint64_t *count) const {
  std::string out;
  std::size_t from = 0;  // what lies before is in `out`, or masked
  const std::uint64_t step = factor();
  for (std::size_t at = 0; at + begin_bytes <= text.size() && !prints_.empty(); ++at) {
    const std::uint16_t begin = begin_of(text.data() + at, step);
    if ((begins_[begin / 64] >> (begin % 64) & 1) == 0) continue;
    const std::size_t length = length_at(text.substr(at), begin);
    if (length == 0) continue;
    if (at >= from) {
      out.append(text.substr(from, at - from)).append(instead);
      ++*count;
    }
    from = std::max(from, at + length);  // they may overlap
  }
  return out.append(text.substr(from));
}

}  // namespace bulkhead
