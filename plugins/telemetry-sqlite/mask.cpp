#include "telemetry-sqlite/mask.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace telemetry_sqlite {
namespace {

constexpr std::string_view mask = "***";

bool is_alnum(char c) noexcept {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

// What tokens consist of; a backslash ends one in JSON text.
bool is_token_char(char c) noexcept {
  return is_alnum(c) || c == '_' || c == '-' || c == '.' || c == '=' || c == '/' || c == '+' ||
         c == '~';
}

std::size_t token_length(std::string_view text) noexcept {
  const auto end = std::find_if_not(text.begin(), text.end(), is_token_char);
  return static_cast<std::size_t>(end - text.begin());
}

// A token that begins so and is at least that long, all in all.
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
constexpr std::string_view url_begin = "://", escaped_url_begin = R"(:\/\/)";

// The two bytes that each of them begins with.
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

// Which pairs of bytes those are. Nearly no place of a text passes this one look.
class Pairs {
 public:
  constexpr Pairs() {
    for (const std::string_view one : beginnings) {
      const unsigned pair = index(one[0], one[1]);
      bits_[pair / 64] |= std::uint64_t{1} << (pair % 64);
    }
  }
  bool has(const char *at) const noexcept {  // two bytes
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

// The same for 16 places at once, and a few too many: by the halves of both bytes, in which of
// eight groups of pairs they occur.
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

// From the first of the places that may be one, of 16 at a time; at least 17 bytes must be left.
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

// The first place in text[from, end) where a credential may begin, else `end`.
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

// A JWT has three parts; other base64 of JSON is content.
bool is_jwt(std::string_view token) noexcept {
  return std::count(token.begin(), token.end(), '.') >= 2;
}

// How much of the text is a credential, and what of it stays before the mask. 0: none.
// `*no_jwt`: so many bytes are known to be in a token that is no JWT, so that none begins in them
// either; kept, so that a text is not read to its end from each of its places.
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

// "://user:password@": the password. Some programs write JSON with `\/` for each slash.
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

// A text, and what it becomes: copied only when something in it is masked.
class Masked {
 public:
  explicit Masked(std::string_view text) : text_(text) {}
  void replace(std::size_t begin, std::size_t end, std::string_view with) {
    out_.append(text_, from_, begin - from_).append(with);
    from_ = end;
    ++count_;
  }
  // How many were masked.
  std::uint64_t finish(std::string *text) {
    if (count_ == 0) return 0;
    out_.append(text_, from_);
    *text = std::move(out_);
    return count_;
  }

 private:
  const std::string_view text_;
  std::string out_;
  std::size_t from_ = 0;
  std::uint64_t count_ = 0;
};

bool is_hex(char c) noexcept {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F') || (c >= 'a' && c <= 'f');
}

// \u003c, say.
bool is_escaped_unit(std::string_view text) noexcept {
  return text.starts_with("\\u") && std::all_of(text.begin() + 2, text.end(), is_hex);
}

// A token does not begin within a word; the letters of an escape (\n, \u003c) are none.
bool begins_token(std::string_view text, std::size_t begin, std::size_t at) noexcept {
  if (at == begin || !is_alnum(text[at - 1])) return true;
  return (at >= begin + 2 && text[at - 2] == '\\') ||
         (at >= begin + 6 && is_escaped_unit(text.substr(at - 6, 6)));
}

// "password=hunter2": where the value behind the equals sign is, without the quotes that it may be
// in. Empty: the name is none of a secret.
struct Range {
  std::size_t begin = 0, end = 0;
  bool empty() const noexcept { return begin >= end; }
};
Range assigned(std::string_view text, std::size_t begin, std::size_t equals) {
  constexpr std::size_t longest_name = 64, longest_quoted = 256;
  std::size_t name = equals;
  while (name > begin && equals - name < longest_name &&
         (is_alnum(text[name - 1]) || text[name - 1] == '_' || text[name - 1] == '-')) {
    --name;
  }
  if (!is_secret_name(text.substr(name, equals - name))) return {};
  std::size_t from = equals + 1, to = text.npos;
  for (const std::string_view quote : {R"(\")", "\"", "'"}) {
    if (!text.substr(from).starts_with(quote)) continue;
    from += quote.size();
    to = text.substr(from, longest_quoted).find(quote);
    if (to != text.npos) to += from;
    break;
  }
  if (to == text.npos) to = text.find_first_of(" \t\r\n\"'\\&;,<>(){}[]", from);
  // "Bearer TOKEN" and keys of many lines do not end at the first space.
  std::size_t stays = 0, no_jwt = 0;
  const std::size_t n = credential(text.substr(from), &stays, &no_jwt);
  return {from + (n == 0 ? 0 : stays), std::max(std::min(to, text.size()), from + n)};
}

// The credentials in text[begin, end).
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

// The closing quote of the string whose inside begins at `from`, or the end of the text.
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

// Of letters and digits in lower case; at least 6 of them.
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
    if (is_alnum(c)) buffer[n++] = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  }
  const std::string_view plain(buffer, n);
  for (std::size_t i = 0; i + 6 <= n; ++i) {
    if (begins_secret_word(plain.substr(i))) return true;
  }
  for (const std::string_view whole : {"pwd", "pin", "otp", "cvv", "auth", "xauth"}) {
    if (plain == whole) return true;
  }
  if (!plain.ends_with("token")) return false;
  // Places in a list, and MCP's own, are none.
  return !plain.ends_with("progresstoken") && !plain.ends_with("pagetoken") &&
         !plain.ends_with("continuationtoken");
}

void mask_text(std::string *text, std::uint64_t *count) {
  Masked out(*text);
  mask_part(*text, 0, text->size(), &out);
  *count += out.finish(text);
}

namespace {

// Which of the values that come belong to a secret name.
class Belonging {
 public:
  // The name of a member.
  void name(std::string_view name) {
    // A tool's schema names its parameters; what they are is no secret.
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
  // "tokens" may be a number of them, or ids.
  static bool is_plural(std::string_view name) {
    return name.ends_with("tokens") || name.ends_with("Tokens") || name.ends_with("TOKENS");
  }
  void forget() { named_ = schema_ = texts_ = properties_follow_ = false; }

  std::size_t depth_ = 0, all_ = 0, list_ = 0;  // where what belongs to a name was opened; 0: none
  std::vector<std::size_t> properties_;
  bool named_ = false, schema_ = false, texts_ = false, properties_follow_ = false;
};

}  // namespace

void mask_json(std::string *text, std::uint64_t *count) {
  const std::string_view json = *text;
  Masked out(json);
  Belonging belonging;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '"') {
      const std::size_t end = string_end(json, i + 1);
      if (is_key(json, end + 1)) {
        belonging.name(json.substr(i + 1, end - i - 1));
      } else if (belonging.text() && end > i + 1) {
        out.replace(i + 1, end, mask);
      } else {
        mask_part(json, i + 1, end, &out);
      }
      i = end;
    } else if (belonging.number() && (c == '-' || (c >= '0' && c <= '9'))) {
      const std::size_t begin = i;
      while (i + 1 < json.size() && (is_alnum(json[i + 1]) || json[i + 1] == '.' ||
                                     json[i + 1] == '+' || json[i + 1] == '-')) {
        ++i;
      }
      out.replace(begin, i + 1, "\"***\"");
    } else {
      if (c == '{' || c == '[') belonging.open();
      if (c == '}' || c == ']') belonging.close();
      if (c == ',') belonging.comma();
    }
  }
  *count += out.finish(text);
}

void mask_cut_end(std::string *text, std::uint64_t *count) {
  constexpr std::size_t most = 512;
  std::size_t n = 0;
  while (n < std::min(most, text->size()) && is_token_char((*text)[text->size() - 1 - n])) ++n;
  if (n < 2) return;
  text->replace(text->size() - n, n, mask);
  ++*count;
}

}  // namespace telemetry_sqlite
