#include "route/list_cursors.hpp"

#include <charconv>
#include <cstdio>

namespace bulkhead {
namespace {

std::uint64_t mix(std::uint64_t x) {  // the finalizer of splitmix64
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

std::string ListCursors::encode(std::uint64_t version, ItemKind kind, std::uint32_t first) const {
  const std::uint64_t tag = mix(key_ ^ mix(version ^ (std::uint64_t{first} << 32) ^
                                           (static_cast<std::uint64_t>(kind) << 28)));
  char text[48];
  std::snprintf(text, sizeof text, "%08x%016llx", first, static_cast<unsigned long long>(tag));
  return text;
}

std::optional<std::uint32_t> ListCursors::decode(std::uint64_t version, ItemKind kind,
                                                 std::string_view text) const {
  std::uint32_t first = 0;
  if (text.size() != 24) return std::nullopt;
  const std::string_view number = text.substr(0, 8);
  const char *const last = number.data() + number.size();
  const auto [end, error] = std::from_chars(number.data(), last, first, 16);
  if (error != std::errc{} || end != last) return std::nullopt;
  if (encode(version, kind, first) != text) return std::nullopt;
  return first;
}

}  // namespace bulkhead
