#include "telemetry-sqlite/mask.hpp"

#include <bulkhead/cpp/decoded.hpp>
#include <bulkhead/cpp/text.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

#include "telemetry-sqlite/mask_parts.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace telemetry_sqlite {
namespace {

using bh::Decoded;

// Limit on the number of bytes that are decoded for one text. Only malicious input exceeds it.
constexpr std::size_t decoded_per_byte = 64, decoded_at_least = 64u << 10;

std::size_t token_length(std::string_view text) noexcept {
  const auto end = std::find_if_not(text.begin(), text.end(), is_token_char);
  return static_cast<std::size_t>(end - text.begin());
}

// A token format: the prefix and the minimum length of the whole token.
struct Shape {
  std::string_view prefix;
  std::size_t least;
};
constexpr std::string_view jwt_begin = "eyJ";
constexpr Shape shapes[] = {
    {"AIza", 39},   {"AKIA", 20},     {"ASIA", 20},     {jwt_begin, 40},  {"gho_", 36},
    {"ghp_", 36},   {"ghr_", 36},     {"ghs_", 36},     {"ghu_", 36},     {"github_pat_", 40},
    {"glpat-", 20}, {"hf_", 30},      {"npm_", 36},     {"pk_live_", 24}, {"rk_live_", 24},
    {"sk-", 20},    {"sk_live_", 24}, {"sk_test_", 24}, {"xoxa-", 20},    {"xoxb-", 20},
    {"xoxp-", 20},  {"xoxr-", 20},    {"xoxs-", 20},    {"ya29.", 30}};
constexpr std::string_view schemes[] = {"Bearer ", "bearer ", "BEARER ", "Basic ", "basic "};
constexpr std::string_view key_begin = "-----BEGIN ", key_end = "-----END ";

// The prefixes of all credential formats.
constexpr auto beginnings = [] {
  std::array<std::string_view, std::size(shapes) + std::size(schemes) + 3> out;
  std::size_t n = 0;
  for (const Shape &shape : shapes) out[n++] = shape.prefix;
  for (const std::string_view scheme : schemes) out[n++] = scheme;
  out[n++] = key_begin;
  out[n++] = url_begin;
  out[n++] = escaped_url_begin;
  return out;
}();

// The set of byte pairs with which the prefixes begin. Nearly every position in a text can be
// skipped because the two bytes there are not in the set.
class Pairs {
 public:
  constexpr Pairs() {
    for (const std::string_view one : beginnings) {
      const unsigned pair = index(one[0], one[1]);
      bits_[pair / 64] |= std::uint64_t{1} << (pair % 64);
    }
  }
  bool has(const char *at) const noexcept {  // reads two bytes
    const unsigned pair = index(at[0], at[1]);
    return (bits_[pair / 64] >> (pair % 64) & 1) != 0;
  }

 private:
  static constexpr unsigned index(char first, char second) {
    return static_cast<unsigned char>(first) * 256u + static_cast<unsigned char>(second);
  }
  std::array<std::uint64_t, 1024> bits_{};
};
constexpr Pairs pairs;

#if defined(__x86_64__)

// Tables for checking 16 positions at a time; false positives are possible. The byte pairs are
// divided into eight groups. Each table maps a nibble of the first or second byte to the groups
// that contain it.
struct Halves {
  alignas(16) std::array<unsigned char, 16> low1{}, high1{}, low2{}, high2{};
  constexpr Halves() {
    for (const std::string_view one : beginnings) {
      const auto first = static_cast<unsigned char>(one[0]);
      const auto second = static_cast<unsigned char>(one[1]);
      const auto group = static_cast<unsigned char>(1u << (first + second / 16u) % 8);
      low1[first % 16] |= group;
      high1[first / 16] |= group;
      low2[second % 16] |= group;
      high2[second / 16] |= group;
    }
  }
};
constexpr Halves halves;

// Checks 16 positions at a time and returns the first position that may match. If fewer than 17
// bytes remain, returns the position where checking stopped.
__attribute__((target("ssse3"))) std::size_t skip_harmless(const char *text, std::size_t from,
                                                           std::size_t end) noexcept {
  const auto table = [](const std::array<unsigned char, 16> &of) {
    return _mm_load_si128(reinterpret_cast<const __m128i *>(of.data()));
  };
  const __m128i low1 = table(halves.low1), high1 = table(halves.high1);
  const __m128i low2 = table(halves.low2), high2 = table(halves.high2);
  const __m128i half = _mm_set1_epi8(0x0f);
  for (; from + 17 <= end; from += 16) {
    const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i *>(text + from));
    const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i *>(text + from + 1));
    const __m128i first =
        _mm_and_si128(_mm_shuffle_epi8(low1, _mm_and_si128(a, half)),
                      _mm_shuffle_epi8(high1, _mm_and_si128(_mm_srli_epi16(a, 4), half)));
    const __m128i second =
        _mm_and_si128(_mm_shuffle_epi8(low2, _mm_and_si128(b, half)),
                      _mm_shuffle_epi8(high2, _mm_and_si128(_mm_srli_epi16(b, 4), half)));
    const __m128i none = _mm_cmpeq_epi8(_mm_and_si128(first, second), _mm_setzero_si128());
    const auto some = static_cast<unsigned>(_mm_movemask_epi8(none)) ^ 0xffffu;
    if (some != 0) return from + static_cast<std::size_t>(__builtin_ctz(some));
  }
  return from;
}

#endif

// Returns the first position in text[from, end) where a credential may start, or `end`.
std::size_t next_suspect(std::string_view text, std::size_t from, std::size_t end) noexcept {
#if defined(__x86_64__)
  static const bool wide = __builtin_cpu_supports("ssse3");
#endif
  for (; from + 1 < end; ++from) {
#if defined(__x86_64__)
    if (wide) from = skip_harmless(text.data(), from, end);
    if (from + 1 >= end) break;
#endif
    if (pairs.has(text.data() + from)) return from;
  }
  return end;
}

// Returns true if the token has the three parts of a JWT. If it does not, it is ordinary
// Base64-encoded JSON.
bool is_jwt(std::string_view token) noexcept {
  return std::count(token.begin(), token.end(), '.') >= 2;
}

// If `text` starts with a credential, returns its length. Otherwise, returns 0. *stays is the
// length of the prefix that is not masked. *no_jwt is the number of bytes at the start of `text`
// that are already known to belong to a token that is not a JWT. The caller keeps this number
// between calls, so that the same token is not scanned again from each position.
std::size_t credential(std::string_view text, std::size_t *stays, std::size_t *no_jwt) noexcept {
  *stays = 0;
  for (const std::string_view scheme : schemes) {
    if (!text.starts_with(scheme)) continue;
    const std::size_t n = token_length(text.substr(scheme.size()));
    *stays = scheme.size();
    return n >= 8 ? scheme.size() + n : 0;
  }
  if (text.starts_with(key_begin)) {
    constexpr std::string_view names = "PRIVATE KEY-----";
    if (text.substr(0, 64 + names.size()).find(names) == text.npos) return 0;
    const std::size_t end = text.find(key_end);
    const std::size_t dashes = end == text.npos ? end : text.find("-----", end + key_end.size());
    return dashes == text.npos ? text.size() : dashes + 5;
  }
  for (const Shape &shape : shapes) {
    if (!text.starts_with(shape.prefix)) continue;
    const bool jwt = shape.prefix == jwt_begin;
    if (jwt && *no_jwt != 0) continue;
    const std::size_t n = token_length(text);
    if (n < shape.least) continue;
    if (!jwt || is_jwt(text.substr(0, n))) return n;
    *no_jwt = n;
  }
  return 0;
}

// Finds the password in "://user:password@" at the start of `text`. The slashes may be escaped as
// `\/`, as some programs write them in JSON. Returns the number of bytes up to the end of the
// password, or 0 if there is none. *stays is the number of bytes before the password.
std::size_t password_of_url(std::string_view text, std::size_t *stays) noexcept {
  const bool escaped = text.starts_with(escaped_url_begin);
  if (!escaped && !text.starts_with(url_begin)) return 0;
  const std::size_t begin = escaped ? escaped_url_begin.size() : url_begin.size();
  const std::size_t end = std::min(text.find_first_of("/?#\"\\ ", begin), text.size());
  const std::size_t at = text.substr(0, end).rfind('@');
  const std::size_t colon = text.find(':', begin);
  if (at == text.npos || colon == text.npos || colon >= at || colon + 1 == at) return 0;
  *stays = colon + 1;
  return at;
}

// A replacement for text[begin, end).
struct Edit {
  std::size_t begin = 0, end = 0;
  std::string with;
  std::size_t order;  // insertion order
};

// A string and the replacements to make in it. The string is copied only if there are replacements.
class Masked {
 public:
  explicit Masked(std::string_view text) : text_(text) {}
  std::string_view text() const noexcept { return text_; }
  const std::vector<Edit> &edits() const noexcept { return edits_; }

  // Adds a replacement. Replacements may be added in any order. Those that overlap are merged, and
  // the one that begins first determines the new text.
  void replace(std::size_t begin, std::size_t end, std::string_view with) {
    edits_.push_back({begin, end, std::string(with), edits_.size()});
  }
  // Applies the replacements to *text and returns their number.
  std::uint64_t finish(std::string *text) {
    if (edits_.empty()) return 0;
    std::sort(edits_.begin(), edits_.end(), [](const Edit &a, const Edit &b) {
      return a.begin != b.begin ? a.begin < b.begin : a.order < b.order;
    });
    std::string out;
    std::size_t from = 0;  // the text before this offset has been copied or masked
    std::uint64_t count = 0;
    for (const Edit &edit : edits_) {
      if (count == 0 || edit.begin >= from) {
        out.append(text_, from, edit.begin - from).append(edit.with);
        ++count;
      }
      from = std::max(from, edit.end);
    }
    out.append(text_, from);
    *text = std::move(out);
    return count;
  }

 private:
  const std::string_view text_;
  std::vector<Edit> edits_;
};

// Returns true if `text` is an escape sequence such as \u003c.
bool is_escaped_unit(std::string_view text) noexcept {
  return text.starts_with("\\u") &&
         std::all_of(text.begin() + 2, text.end(), [](char c) { return bh::hex_value(c) >= 0; });
}

// Returns true if a token may start at `at`. A token cannot start within a word, but it may follow
// an escape sequence such as \t or \u003c.
bool begins_token(std::string_view text, std::size_t begin, std::size_t at) noexcept {
  if (at == begin || !bh::is_letter_or_digit(text[at - 1])) return true;
  return (at >= begin + 2 && text[at - 2] == '\\') ||
         (at >= begin + 6 && is_escaped_unit(text.substr(at - 6, 6)));
}

struct Range {
  std::size_t begin = 0, end = 0;
  bool empty() const noexcept { return begin >= end; }
};
// Returns the range of the value in an assignment such as "password=hunter2", without quotes. The
// range is empty if the name is not secret.
Range assigned(std::string_view text, std::size_t begin, std::size_t equals) {
  constexpr std::size_t longest_name = 64, longest_quoted = 256;
  std::size_t name = equals;
  while (
      name > begin && equals - name < longest_name &&
      (bh::is_letter_or_digit(text[name - 1]) || text[name - 1] == '_' || text[name - 1] == '-')) {
    --name;
  }
  if (!is_secret_name(text.substr(name, equals - name))) return {};
  std::size_t from = equals + 1, to = text.npos;
  for (const std::string_view quote : {R"(\")", "\"", "'"}) {
    if (!text.substr(from).starts_with(quote)) continue;
    from += quote.size();
    to = text.substr(from, longest_quoted).find(quote);
    if (to != text.npos) {
      to += from;
    } else {
      to = std::min(text.size(), from + longest_quoted);  // truncated
    }
    break;
  }
  if (to == text.npos) to = text.find_first_of(" \t\r\n\"'\\&;,<>(){}[]", from);
  // A credential may contain spaces, such as "Bearer TOKEN" or a multi-line key.
  std::size_t stays = 0, no_jwt = 0;
  const std::size_t n = credential(text.substr(from), &stays, &no_jwt);
  return {from + (n == 0 ? 0 : stays), std::max(std::min(to, text.size()), from + n)};
}

// Masks the credentials in text[begin, end).
void mask_part(std::string_view text, std::size_t begin, std::size_t end, Masked *out) {
  const std::string_view part = text.substr(0, end);
  std::size_t no_jwt_before = begin, equals = part.find('=', begin);
  for (std::size_t i = begin; i < end; ++i) {
    i = next_suspect(text, i, end);
    for (; equals < i; equals = part.find('=', equals + 1)) {
      const Range value = assigned(part, begin, equals);
      if (value.empty()) continue;
      out->replace(value.begin, value.end, mask);
      equals = value.end - 1;
      i = std::max(i, value.end);
    }
    if (i + 1 >= end) return;
    std::size_t stays = 0, n = 0;
    if (text[i] == ':') {
      n = password_of_url(part.substr(i), &stays);
    } else if (begins_token(part, begin, i)) {
      std::size_t no_jwt = std::max(no_jwt_before, i) - i;
      n = credential(part.substr(i), &stays, &no_jwt);
      no_jwt_before = i + no_jwt;
    }
    if (n == 0) continue;
    out->replace(i + stays, i + n, mask);
    i += n - 1;
    if (equals <= i) equals = part.find('=', i + 1);
  }
}

// Returns the position of the quotation mark that closes the string whose content starts at `from`.
// Returns the end of the text if the string is not closed.
std::size_t string_end(std::string_view json, std::size_t from) noexcept {
  std::size_t at = from;
  while ((at = json.find('"', at)) != json.npos) {
    std::size_t inside = at;
    while (inside > from && json[inside - 1] == '\\') --inside;
    if ((at - inside) % 2 == 0) return at;
    ++at;
  }
  return json.size();
}

bool is_key(std::string_view json, std::size_t behind) noexcept {
  const std::size_t next = json.find_first_not_of(" \t\r\n", behind);
  return next != json.npos && json[next] == ':';
}

// `text` must be at least 6 characters long and contain only lowercase letters and digits.
bool begins_secret_word(std::string_view text) noexcept {
  const auto is = [text](std::string_view word) { return text.starts_with(word); };
  switch (text[0]) {
    case 'p':
      return is("password") || is("passwd") || is("passphrase") || is("privatekey");
    case 's':
      return is("secret");
    case 'a':
      return is("apikey") || is("accesskey") || is("authorization");
    case 'c':
      return is("credential") || is("cookie");
    case 'b':
      return is("bearer");
    default:
      return false;
  }
}

}  // namespace

bool is_secret_name(std::string_view name) {
  char buffer[128];
  std::size_t n = 0;
  for (const char c : name.substr(0, sizeof buffer)) {
    if (bh::is_letter_or_digit(c)) buffer[n++] = bh::lower(c);
  }
  const std::string_view plain(buffer, n);
  for (std::size_t i = 0; i + 6 <= n; ++i) {
    if (begins_secret_word(plain.substr(i))) return true;
  }
  for (const std::string_view whole : {"pwd", "pin", "otp", "cvv", "auth", "xauth"}) {
    if (plain == whole) return true;
  }
  if (!plain.ends_with("token")) return false;
  // MCP progress tokens and pagination tokens are not secret.
  return !plain.ends_with("progresstoken") && !plain.ends_with("pagetoken") &&
         !plain.ends_with("continuationtoken");
}

namespace {

// Tracks which values are secret because of a member name.
class Belonging {
 public:
  // Called for each member name.
  void name(std::string_view name) {
    // In a tool's schema, the members of "properties" are parameter names, whose definitions are
    // not secret.
    const bool schema = !properties_.empty() && properties_.back() == depth_;
    named_ = is_secret_name(name);
    schema_ = named_ && schema;
    texts_ = !named_ && is_plural(name);
    properties_follow_ = name == "properties";
  }
  void open() {
    ++depth_;
    if (all_ == 0 && named_ && !schema_) all_ = depth_;
    if (list_ == 0 && texts_) list_ = depth_;
    if (properties_follow_) properties_.push_back(depth_);
    forget();
  }
  void close() {
    if (all_ == depth_) all_ = 0;
    if (list_ == depth_) list_ = 0;
    if (!properties_.empty() && properties_.back() == depth_) properties_.pop_back();
    if (depth_ > 0) --depth_;
    forget();
  }
  void comma() { forget(); }
  bool number() const { return named_ || all_ != 0; }
  bool text() const { return number() || list_ != 0; }

 private:
  // "tokens" may name a count or a list of IDs, so numbers in its value are not masked.
  static bool is_plural(std::string_view name) {
    return name.ends_with("tokens") || name.ends_with("Tokens") || name.ends_with("TOKENS");
  }
  void forget() { named_ = schema_ = texts_ = properties_follow_ = false; }

  // depth_ is the current nesting depth. all_ and list_ are the depths of the value in which
  // everything (all_) or every string (list_) is secret, or 0 if there is none.
  std::size_t depth_ = 0, all_ = 0, list_ = 0;
  std::vector<std::size_t> properties_;
  bool named_ = false, schema_ = false, texts_ = false, properties_follow_ = false;
};

// Masks a string, decodes its escape sequences, and masks the decoded string. Repeats this up to
// max_layers times.
class Look {
 public:
  explicit Look(std::size_t bytes) : left_(decoded_at_least + decoded_per_byte * bytes) {}

  // Masks the JSON that starts at `from`. The JSON may be truncated.
  void json(std::size_t from, unsigned layer, Masked *out) {
    const std::string_view json = out->text();
    Belonging belonging;
    for (std::size_t i = from; i < json.size(); ++i) {
      const char c = json[i];
      if (c == '"') {
        const std::size_t end = string_end(json, i + 1);
        const std::string_view inside = json.substr(i + 1, end - i - 1);
        if (is_key(json, end + 1)) {
          const bool escaped_name = inside.find_first_of("\\%") != inside.npos;
          if (escaped_name) belonging.name(decoded_name(inside));
          if (!escaped_name) belonging.name(inside);
        } else if (belonging.text() && end > i + 1) {
          out->replace(i + 1, end, mask);
        } else {
          mask_part(json, i + 1, end, out);
          decoded(i + 1, end, layer, out);
        }
        i = end;
      } else if (belonging.number() && (c == '-' || (c >= '0' && c <= '9')) &&
                 (i == 0 || !bh::is_letter_or_digit(json[i - 1]))) {
        const std::size_t begin = i;
        while (i + 1 < json.size() && (bh::is_letter_or_digit(json[i + 1]) || json[i + 1] == '.' ||
                                       json[i + 1] == '+' || json[i + 1] == '-')) {
          ++i;
        }
        out->replace(begin, i + 1, "\"***\"");
      } else {
        if (c == '{' || c == '[') belonging.open();
        if (c == '}' || c == ']') belonging.close();
        if (c == ',') belonging.comma();
      }
    }
  }

  // Masks text. Any JSON within the text is masked as JSON.
  void text(unsigned layer, Masked *out) {
    const std::string_view text = out->text();
    mask_part(text, 0, text.size(), out);
    const std::size_t document = document_begin(text);
    if (document < text.size()) json(document, layer, out);
    // In JSON, only strings contain escape sequences, and json() decodes them.
    if (text.find_first_not_of(" \t\r\n") != document) decoded(0, text.size(), layer, out);
  }

 private:
  // Returns the decoded member name, or a secret name if it has too many layers of escapes.
  static std::string decoded_name(std::string_view name) {
    std::string out = Decoded::all_of(name, max_layers);
    if (Decoded::of(out, Decoded::Layer::both)) out = "secret";
    return out;
  }

  // Returns the position at which JSON probably starts, which is the first {" or [" or [{ or [[.
  static std::size_t document_begin(std::string_view text) noexcept {
    for (std::size_t i = 0; i + 1 < text.size(); ++i) {
      if (text[i] != '{' && text[i] != '[') continue;
      const std::size_t next = text.find_first_not_of(" \t\r\n", i + 1);
      if (next == text.npos) break;
      const bool list = text[i] == '[' && (text[next] == '{' || text[next] == '[');
      if (text[next] == '"' || list) return i;
    }
    return text.size();
  }

  // Decodes [begin, end) and masks the decoded text. Masks all of it if that would exceed a limit.
  // Percent escapes are decoded separately, because an encoded quotation mark must not change how
  // the surrounding JSON is parsed.
  void decoded(std::size_t begin, std::size_t end, unsigned layer, Masked *out) {
    for (const auto kind : {Decoded::Layer::json, Decoded::Layer::percent}) {
      const auto below = Decoded::of(out->text().substr(begin, end - begin), kind);
      if (!below) continue;
      if (layer == max_layers || below->text().size() > left_) {
        return out->replace(begin, end, mask);
      }
      left_ -= below->text().size();
      Masked inside(below->text());
      text(layer + 1, &inside);
      for (const Edit &edit : inside.edits()) {
        if (edit.begin == edit.end) continue;
        const Decoded::Range at = below->source(edit.begin, edit.end);
        out->replace(begin + at.begin, begin + at.end, escaped(edit.with, kind));
      }
    }
  }

  static std::string escaped(std::string_view text, Decoded::Layer kind) {
    std::string out;
    for (const char c : text) {
      if (kind == Decoded::Layer::json && (c == '"' || c == '\\')) out += '\\';
      if (kind == Decoded::Layer::percent && (c == '"' || c == '\\')) {
        out += c == '"' ? "%22" : "%5C";
      } else {
        out += c;
      }
    }
    return out;
  }

  std::size_t left_;  // number of bytes that may be decoded before the limit is reached
};

}  // namespace

void mask_json(std::string *text, std::uint64_t *count) {
  Masked out(*text);
  Look(text->size()).json(0, 0, &out);
  *count += out.finish(text);
}

void mask_text(std::string *text, std::uint64_t *count) {
  Masked out(*text);
  Look(text->size()).text(0, &out);
  *count += out.finish(text);
}

}  // namespace telemetry_sqlite
