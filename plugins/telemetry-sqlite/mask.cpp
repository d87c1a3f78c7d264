#include "telemetry-sqlite/mask.hpp"

#include <algorithm>
#include <array>
#include <vector>

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
constexpr Shape shapes[] = {{"AIza", 39},     {"AKIA", 20},        {"ASIA", 20},     {"eyJ", 40},
                            {"gho_", 36},     {"ghp_", 36},        {"ghr_", 36},     {"ghs_", 36},
                            {"ghu_", 36},     {"github_pat_", 40}, {"glpat-", 20},   {"hf_", 30},
                            {"npm_", 36},     {"pk_live_", 24},    {"rk_live_", 24}, {"sk-", 20},
                            {"sk_live_", 24}, {"sk_test_", 24},    {"xoxa-", 20},    {"xoxb-", 20},
                            {"xoxp-", 20},    {"xoxr-", 20},       {"xoxs-", 20},    {"ya29.", 30}};
constexpr std::string_view schemes[] = {"Bearer ", "bearer ", "BEARER ", "Basic ", "basic "};
constexpr std::string_view key_begin = "-----BEGIN ", key_end = "-----END ";

constexpr std::array<bool, 256> first_bytes = [] {
  std::array<bool, 256> out{};
  for (const Shape &shape : shapes) out[static_cast<unsigned char>(shape.prefix[0])] = true;
  for (const char c : {'B', 'b', '-', ':'}) out[static_cast<unsigned char>(c)] = true;
  return out;
}();

// How much of the text is a credential, and what of it stays before the mask. 0: none.
std::size_t credential(std::string_view text, std::size_t *stays) noexcept {
  *stays = 0;
  for (const std::string_view scheme : schemes) {
    if (!text.starts_with(scheme)) continue;
    const std::size_t n = token_length(text.substr(scheme.size()));
    *stays = scheme.size();
    return n >= 8 ? scheme.size() + n : 0;
  }
  if (text.starts_with(key_begin)) {
    const std::size_t names = text.find("PRIVATE KEY-----");
    if (names == text.npos || names > 64) return 0;
    const std::size_t end = text.find(key_end);
    const std::size_t dashes = end == text.npos ? end : text.find("-----", end + key_end.size());
    return dashes == text.npos ? text.size() : dashes + 5;
  }
  for (const Shape &shape : shapes) {
    if (!text.starts_with(shape.prefix)) continue;
    const std::size_t n = token_length(text);
    // A JWT has three parts; other base64 of JSON is content.
    const bool fits =
        shape.prefix != "eyJ" ||
        std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(n), '.') >= 2;
    if (n >= shape.least && fits) return n;
  }
  return 0;
}

// "://user:password@": the password.
std::size_t password_of_url(std::string_view text, std::size_t *stays) noexcept {
  if (!text.starts_with("://")) return 0;
  const std::size_t end = std::min(text.find_first_of("/?#\"\\ ", 3), text.size());
  const std::size_t at = text.substr(0, end).rfind('@');
  const std::size_t colon = text.find(':', 3);
  if (at == text.npos || colon == text.npos || colon >= at || colon + 1 == at) return 0;
  *stays = colon + 1;
  return at;
}

void append_masked(std::string_view text, std::string *out, std::uint64_t *count) {
  std::size_t from = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!first_bytes[static_cast<unsigned char>(text[i])]) continue;
    std::size_t stays = 0, n = 0;
    if (text[i] == ':') {
      n = password_of_url(text.substr(i), &stays);
    } else if (i == 0 || !is_alnum(text[i - 1])) {
      n = credential(text.substr(i), &stays);
    }
    if (n == 0) continue;
    out->append(text.substr(from, i + stays - from)).append(mask);
    ++*count;
    from = i + n;
    i = from - 1;
  }
  out->append(text.substr(from));
}

// The end of the string whose inside begins at `from`: its closing quote, or the end of the text.
std::size_t string_end(std::string_view json, std::size_t from) noexcept {
  for (std::size_t i = from; i < json.size(); ++i) {
    if (json[i] == '\\') {
      ++i;
    } else if (json[i] == '"') {
      return i;
    }
  }
  return json.size();
}

bool is_key(std::string_view json, std::size_t behind) noexcept {
  const std::size_t next = json.find_first_not_of(" \t\r\n", behind);
  return next != json.npos && json[next] == ':';
}

}  // namespace

bool is_secret_name(std::string_view name) {
  std::string plain;
  for (const char c : name.substr(0, 128)) {
    if (is_alnum(c)) plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  }
  for (const std::string_view part :
       {"password", "passwd", "passphrase", "secret", "apikey", "accesskey", "privatekey",
        "credential", "authorization", "cookie", "bearer"}) {
    if (plain.find(part) != plain.npos) return true;
  }
  for (const std::string_view whole : {"pwd", "pin", "otp", "cvv", "auth", "xauth"}) {
    if (plain == whole) return true;
  }
  // Places in a list, and MCP's own, are none.
  for (const std::string_view harmless : {"progresstoken", "pagetoken", "continuationtoken"}) {
    if (plain.ends_with(harmless)) return false;
  }
  return plain.ends_with("token");
}

std::string mask_text(std::string_view text, std::uint64_t *count) {
  std::string out;
  out.reserve(text.size());
  append_masked(text, &out, count);
  return out;
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

std::string mask_json(std::string_view json, std::uint64_t *count) {
  std::string out;
  out.reserve(json.size());
  Belonging belonging;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '"') {
      const std::size_t end = string_end(json, i + 1);
      const std::string_view inside = json.substr(i + 1, end - i - 1);
      out += '"';
      if (is_key(json, end + 1)) {
        belonging.name(inside);
        out += inside;
      } else if (belonging.text() && !inside.empty()) {
        out += mask;
        ++*count;
      } else {
        append_masked(inside, &out, count);
      }
      if (end < json.size()) out += '"';
      i = end;
    } else if (belonging.number() && (c == '-' || (c >= '0' && c <= '9'))) {
      while (i + 1 < json.size() && (is_alnum(json[i + 1]) || json[i + 1] == '.' ||
                                     json[i + 1] == '+' || json[i + 1] == '-')) {
        ++i;
      }
      out.append("\"").append(mask).append("\"");
      ++*count;
    } else {
      if (c == '{' || c == '[') belonging.open();
      if (c == '}' || c == ']') belonging.close();
      if (c == ',') belonging.comma();
      out += c;
    }
  }
  return out;
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
