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

std::uint64_t roll(std::uint64_t sum, std::uint64_t base, char c) noexcept {
  return sum * base + static_cast<unsigned char>(c) + 1;
}

std::uint32_t quick_of(std::uint64_t sum) noexcept {
  return static_cast<std::uint32_t>(sum >> 32);
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

std::uint64_t SecretPrints::base() const noexcept {
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
  std::uint64_t sum = 0;
  for (const char c : value) sum = roll(sum, base(), c);
  print.quick = quick_of(sum);
  print.hash = hash_of(value, key_);
  const auto at =
      std::lower_bound(prints_.begin(), prints_.end(), print,
                       [](const Print &a, const Print &b) { return a.bytes < b.bytes; });
  if (std::find(prints_.begin(), prints_.end(), print) == prints_.end()) prints_.insert(at, print);
}

bool SecretPrints::is_one(std::string_view text, std::uint32_t quick) const {
  return std::any_of(prints_.begin(), prints_.end(), [&](const Print &print) {
    return print.bytes == text.size() && print.quick == quick && print.hash == hash_of(text, key_);
  });
}

std::string SecretPrints::mask(std::string_view text, std::uint64_t *count) const {
  std::vector<std::pair<std::size_t, std::size_t>> found;  // begin, end
  const std::uint64_t step = base();
  for (std::size_t i = 0; i < prints_.size();) {
    const std::size_t length = prints_[i].bytes, first = i;
    while (i < prints_.size() && prints_[i].bytes == length) ++i;
    if (length > text.size()) break;
    std::uint64_t leaving = 1;  // what the first byte of the window counts
    for (std::size_t k = 1; k < length; ++k) leaving *= step;
    std::uint64_t sum = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
      if (at >= length) {
        sum -= leaving *
               (static_cast<std::uint64_t>(static_cast<unsigned char>(text[at - length])) + 1);
      }
      sum = roll(sum, step, text[at]);
      if (at + 1 < length) continue;
      const std::uint32_t quick = quick_of(sum);
      const bool fits = std::any_of(prints_.begin() + static_cast<std::ptrdiff_t>(first),
                                    prints_.begin() + static_cast<std::ptrdiff_t>(i),
                                    [quick](const Print &print) { return print.quick == quick; });
      const std::size_t begin = at + 1 - length;
      if (fits && is_one(text.substr(begin, length), quick)) found.emplace_back(begin, at + 1);
    }
  }
  if (found.empty()) return std::string(text);
  std::sort(found.begin(), found.end());
  std::string out;
  std::size_t from = 0;
  for (const auto &[begin, end] : found) {
    if (begin >= from) {
      out.append(text.substr(from, begin - from)).append(instead);
      ++*count;
    }
    from = std::max(from, end);  // they may overlap
  }
  return out.append(text.substr(from));
}

}  // namespace bulkhead
