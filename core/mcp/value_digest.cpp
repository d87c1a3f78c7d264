#include "mcp/value_digest.hpp"

#include <sodium.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <vector>

#include "bulkhead/cpp/json_reader.hpp"
#include "bulkhead/cpp/text.hpp"
#include "mcp/json_names.hpp"
#include "mcp/json_number.hpp"

namespace bulkhead::mcp {
namespace {

static_assert(std::tuple_size_v<ValueDigest> == crypto_generichash_BYTES);

std::string_view inside(std::string_view token) noexcept {
  return token.substr(1, token.size() - 2);
}

bool has_escapes(std::string_view text) noexcept {
  return text.find('\\') != std::string_view::npos;
}

// Compares two string tokens by their unescaped text. Tokens without escape sequences can be
// compared byte by byte, because UTF-8 sorts in the order of code points.
bool is_less(std::string_view a, std::string_view b) noexcept {
  if (!has_escapes(a) && !has_escapes(b)) return a < b;
  json::Unescape left(a), right(b);
  while (!left.done() && !right.done()) {
    const char32_t l = left.next(), r = right.next();
    if (l != r) return l < r;
  }
  return left.done() && !right.done();
}

bool is_compared_as_written(std::string_view json) noexcept {
  if (json.size() > max_canonical_bytes) return true;
  return std::count_if(json.begin(), json.end(), [](char c) { return c == ',' || c == ':'; }) >
         max_canonical_marks;
}

// Hashes the canonical form of one value. Each scalar begins with a tag. Strings and numbers end
// with the byte FF, which never occurs in UTF-8.
class CanonicalHash {
 public:
  CanonicalHash() noexcept {
    crypto_generichash_init(&state_, nullptr, 0, std::tuple_size_v<ValueDigest>);
  }

  void bytes(std::string_view text) noexcept {
    crypto_generichash_update(&state_, reinterpret_cast<const unsigned char *>(text.data()),
                              text.size());
  }
  void digest(const ValueDigest &digest) noexcept {
    crypto_generichash_update(&state_, digest.data(), digest.size());
  }
  void count(std::uint64_t n) noexcept {
    unsigned char text[8];
    for (int i = 0; i < 8; ++i) text[i] = static_cast<unsigned char>(n >> (8 * i));
    crypto_generichash_update(&state_, text, sizeof text);
  }
  // `text` is a string token without quotes.
  void string(std::string_view text) noexcept {
    if (!has_escapes(text)) {
      bytes("s");
      bytes(text);
    } else if (has_replacement(text)) {
      bytes("r");
      bytes(text);
    } else {
      bytes("s");
      unescaped(text);
    }
    bytes("\xFF");
  }
  void number(std::string_view token) noexcept {
    const Decimal value(token);
    if (!value.evaluated()) {
      bytes("N");
      bytes(token);
    } else {
      bytes(value.negative() ? "n-" : "n");
      bytes(value.head());
      bytes(value.tail());
      exponent(value.exponent());
    }
    bytes("\xFF");
  }
  ValueDigest finish() noexcept {
    ValueDigest out;
    crypto_generichash_final(&state_, out.data(), out.size());
    return out;
  }

 private:
  static bool has_replacement(std::string_view text) noexcept {
    for (json::Unescape c(text); !c.done();) {
      if (c.next() == bh::replacement_character) return true;
    }
    return false;
  }
  void unescaped(std::string_view text) noexcept {
    char part[256];
    std::size_t size = 0;
    for (json::Unescape c(text); !c.done();) {
      size += bh::encode_utf8(c.next(), part + size);
      if (size + 4 <= sizeof part) continue;
      bytes({part, size});
      size = 0;
    }
    bytes({part, size});
  }
  void exponent(std::int64_t value) noexcept {
    char digits[24];
    const char *const end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    bytes("e");
    bytes({digits, static_cast<std::size_t>(end - digits)});
  }

  crypto_generichash_state state_;
};

// Computes the digest of a value. An array's elements are hashed in order. For an object, each
// member (its name and its value) is hashed separately, and the members' digests are then hashed in
// the order of the names.
class DigestWalk {
 public:
  void begin_object() { open_.push_back({true, members_.size()}); }
  void end_object() {
    const auto begin = members_.begin() + static_cast<std::ptrdiff_t>(open_.back().first_member);
    // Members with the same name stay in the order in which they occur in the text.
    std::sort(begin, members_.end(), [](const Member &a, const Member &b) {
      if (is_less(a.name, b.name)) return true;
      return !is_less(b.name, a.name) && a.name.data() < b.name.data();
    });
    CanonicalHash &hash = hashes_.back();
    hash.bytes("{");
    hash.count(static_cast<std::uint64_t>(members_.end() - begin));
    for (auto member = begin; member != members_.end(); ++member) hash.digest(member->digest);
    members_.resize(open_.back().first_member);
    open_.pop_back();
    end_value();
  }
  void begin_array() {
    hashes_.back().bytes("[");
    open_.push_back({false, 0});
  }
  void end_array() {
    hashes_.back().bytes("]");
    open_.pop_back();
    end_value();
  }
  void key(std::string_view token) {
    members_.push_back({inside(token), {}});
    hashes_.emplace_back().string(inside(token));
  }
  void string(std::string_view token) {
    hashes_.back().string(inside(token));
    end_value();
  }
  void number(std::string_view token) {
    hashes_.back().number(token);
    end_value();
  }
  void word(std::string_view token) {
    hashes_.back().bytes(token == "null" ? "0" : token.substr(0, 1));  // a tag: 0, t or f
    end_value();
  }

  ValueDigest finish() { return hashes_.front().finish(); }

 private:
  struct Member {
    std::string_view name;
    ValueDigest digest;
  };
  struct Open {
    bool object;
    std::size_t first_member;  // of an object, in members_
  };

  // Called at the end of each value. If the value belongs to a member, stores the member's digest.
  // The members of inner objects have already been removed, so that member is the last one.
  void end_value() {
    if (open_.empty() || !open_.back().object) return;
    members_.back().digest = hashes_.back().finish();
    hashes_.pop_back();
  }

  std::vector<CanonicalHash> hashes_{1};  // of the whole value, then of each open member
  std::vector<Member> members_;           // of the open objects, the innermost object's last
  std::vector<Open> open_;
};

}  // namespace

std::optional<ValueDigest> value_digest(std::string_view json) {
  if (is_compared_as_written(json)) {
    CanonicalHash hash;
    hash.bytes("W");  // no canonical form begins with this tag
    hash.bytes(json);
    return hash.finish();
  }
  DigestWalk walk;
  if (!bh::json::walk(json, walk)) return std::nullopt;
  return walk.finish();
}

}  // namespace bulkhead::mcp
