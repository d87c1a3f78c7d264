#include "route/shown_json.hpp"

#include <algorithm>
#include <cstdint>

#include "bulkhead/cpp/decoded.hpp"
#include "bulkhead/cpp/json_writer.hpp"
#include "bulkhead/cpp/text.hpp"
#include "mcp/description_audit.hpp"
#include "mcp/scan.hpp"
#include "profile/secrets.hpp"

namespace bulkhead {
namespace {

using profiles::credential_name;
using profiles::credential_value;
using profiles::kMask;

constexpr unsigned max_layers = 8;  // maximum nesting of JSON in strings, and of percent-encoding

constexpr std::string_view private_key = "-----BEGIN ";
constexpr std::string_view spaces = " \t\r\n";
// Characters that separate the parts of a word. Each part is masked individually.
constexpr std::string_view delimiters = "\"'`=:,;&?()<>[]{}|";

bool is_scheme(std::string_view word) {
  return bh::equal_ignoring_case(word, "bearer") || bh::equal_ignoring_case(word, "basic");
}

// Returns true if the part looks like a token. "Basi" and "Bearer" are excluded because ordinary
// words begin with them ("Basically"). The word after the scheme is masked anyway.
bool token_shape(std::string_view part) {
  return credential_value(part) && !part.starts_with("Basi") && !part.starts_with("Bearer");
}

// Masks the credentials in a word and appends the result. The word may contain spaces if it was
// percent-encoded. Examples of words: "https://user:password@host/?token=x", "--api-key=x".
void add_plain_word(std::string *out, std::string_view word) {
  const std::size_t scheme = word.find("://");
  if (scheme != std::string_view::npos) {
    const std::size_t end = word.find_first_of("/?#", scheme + 3);
    const std::size_t at = word.substr(0, end).rfind('@');
    if (at != std::string_view::npos && at > scheme) {
      add_plain_word(out, word.substr(0, scheme));
      out->append("://").append(kMask);
      word.remove_prefix(at);
    }
  }
  std::string_view name;  // the text before an '='
  while (!word.empty()) {
    const std::size_t end = word.find_first_of(delimiters);
    const std::string_view part = word.substr(0, end);
    const bool secret = token_shape(part) || (!part.empty() && credential_name(name));
    out->append(secret ? kMask : part);
    if (end == std::string_view::npos) return;
    *out += word[end];
    if (word[end] == '=') {
      name = part;
    } else if (!part.empty() || (word[end] != '"' && word[end] != '\'')) {
      name = {};
    }
    word.remove_prefix(end + 1);
  }
}

// Masks and appends a word. If percent-encoding hides a credential, the decoded word is masked and
// appended instead.
void add_word(std::string *out, std::string_view word) {
  std::string plain(word);
  for (unsigned layer = 0; layer < max_layers; ++layer) {
    const auto below = bh::Decoded::of(plain, bh::Decoded::Layer::percent);
    if (!below) break;
    plain = below->text();
  }
  if (plain.size() != word.size()) {
    std::string masked;
    add_plain_word(&masked, plain);
    if (masked != plain) return void(out->append(masked));
  }
  add_plain_word(out, word);
}

std::string unquoted_word(std::string_view word) {
  const std::size_t begin = word.find_first_not_of(delimiters);
  if (begin == std::string_view::npos) return {};
  return std::string(word.substr(begin, word.find_last_not_of(delimiters) + 1 - begin));
}

void add_character(std::string *out, char32_t c, std::string_view bytes, bool keep_lines) {
  if (!mcp::hidden_character(c) || (keep_lines && (c == '\n' || c == '\t'))) {
    out->append(bytes);
  } else {
    bh::json::append_escaped(out, c);
  }
}

std::string visible(std::string_view text, std::size_t max_bytes, bool keep_lines) {
  std::string out;
  while (!text.empty()) {
    std::size_t size = 0;
    const char32_t c = bh::first_character(text, &size);
    std::string one;
    if (c == 0xFFFD && size == 1) {
      one = bh::replacement_utf8;
    } else {
      add_character(&one, c, text.substr(0, size), keep_lines);
    }
    if (out.size() + one.size() > max_bytes) return out;
    out += one;
    text.remove_prefix(size);
  }
  return out;
}

// Quotes the text as a JSON string, in which hidden characters are written as escape sequences.
std::string quoted_visible(std::string_view text) {
  const std::string quoted = bh::json::quoted(text);
  std::string out;
  for (std::string_view rest = quoted; !rest.empty();) {
    std::size_t size = 0;
    const char32_t c = bh::first_character(rest, &size);
    add_character(&out, c, rest.substr(0, size), false);
    rest.remove_prefix(size);
  }
  return out;
}

// Formats validated JSON in one pass. Masked values are skipped without being copied.
class Walk {
 public:
  Walk(std::string_view json, std::size_t max_bytes, unsigned layer)
      : json_(json), max_(max_bytes), layer_(layer) {}

  ShownJson run() {
    while (at_ < json_.size() && out_.size() < max_) step();
    const bool cut = at_ < json_.size() || out_.size() > max_;
    if (cut) out_ = visible_text(out_, max_);
    return {std::move(out_), cut};
  }

 private:
  void step() {
    const char c = json_[at_];
    if (c == '"') return string();
    if (c == '{' || c == '[') {
      if (hides_) return hidden(container_end());
      objects_ += c == '{' ? '1' : '0';
      key_next_ = c == '{';
    } else if (c == '}' || c == ']') {
      objects_.pop_back();
      key_next_ = false;
    } else if (c == ',') {
      key_next_ = objects_.ends_with('1');
      hides_ = false;
    }
    // JSON allows line breaks and tabs between tokens.
    out_ += spaces.find(c) == std::string_view::npos ? c : ' ';
    ++at_;
  }

  void string() {
    if (hides_ && !key_next_) return hidden(string_end(at_, json_.size()));
    // Only the part of a large string that fits is inspected. An escape sequence has at most six
    // bytes per output character.
    const std::size_t end = string_end(at_, 6 * max_);
    std::string token(json_.substr(at_, end - at_)), scratch;
    const bool all = token.size() > 1 && token.back() == '"' && end - at_ <= 6 * max_;
    if (!all) token += '"';
    const std::string_view text = mcp::unquote(token, &scratch);
    if (key_next_) {
      hides_ = credential_name(bh::Decoded::all_of(text, max_layers));
      key_next_ = false;
      out_ += quoted_visible(text);
    } else {
      out_ += quoted_visible(value(text));
    }
    at_ = end;
    if (!all || inside_cut_) out_.resize(std::max(out_.size(), max_ + 1), ' ');
  }

  // Masks a string. If the string contains JSON, the JSON is formatted by another Walk.
  std::string value(std::string_view text) {
    const std::size_t begin = std::min(text.find_first_not_of(spaces), text.size());
    const bool document =
        text.substr(begin).starts_with('{') || text.substr(begin).starts_with('[');
    if (document && layer_ < max_layers && mcp::valid_json(text)) {
      Walk inside(text, max_, layer_ + 1);
      ShownJson shown = inside.run();
      masked_ = masked_ || inside.masked_;
      inside_cut_ = shown.cut;
      if (inside.masked_ || shown.cut) return std::move(shown.text);
      return std::string(text);
    }
    std::string out = masked_text(text);
    masked_ = masked_ || out != text;
    return out;
  }

  void hidden(std::size_t end) {
    masked_ = true;
    out_.append("\"").append(kMask).append("\"");
    hides_ = false;
    at_ = end;
  }

  // Returns the position after the closing quote. If the string is longer than `most` bytes,
  // returns a position shortly after `most` bytes that is not inside an escape sequence.
  std::size_t string_end(std::size_t begin, std::size_t most) const {
    std::size_t at = begin + 1;
    for (; json_[at] != '"'; ++at) {
      if (at - begin > most) return at;
      if (json_[at] == '\\') at += json_[at + 1] == 'u' ? 5 : 1;
    }
    return at + 1;
  }
  std::size_t container_end() const {
    std::size_t depth = 0, at = at_;
    do {
      const char c = json_[at];
      if (c == '"') {
        at = string_end(at, json_.size());
        continue;
      }
      if (c == '{' || c == '[') ++depth;
      if (c == '}' || c == ']') --depth;
      ++at;
    } while (depth != 0);
    return at;
  }

  const std::string_view json_;
  const std::size_t max_;
  const unsigned layer_;  // number of strings in which this text is nested
  std::size_t at_ = 0;
  // In objects_, each open container is represented by '1' if it is an object or '0' if it is an
  // array.
  std::string out_, objects_;
  bool key_next_ = false;
  bool masked_ = false;      // a value was masked
  bool inside_cut_ = false;  // JSON in a string did not fit
  bool hides_ = false;       // the name of the next value looks like the name of a credential
};

}  // namespace

ShownJson shown_json(std::string_view json, std::size_t max_bytes) {
  return Walk(json, max_bytes, 0).run();
}

std::string masked_text(std::string_view text) {
  std::string out;
  bool behind_scheme = false;
  while (!text.empty()) {
    const std::size_t begin = text.find_first_not_of(spaces);
    out.append(text.substr(0, begin));
    if (begin == std::string_view::npos) break;
    text.remove_prefix(begin);
    if (text.starts_with(private_key)) {
      const std::size_t line = text.find("-----", private_key.size());
      const std::string_view kind = text.substr(0, line);
      if (kind.ends_with("PRIVATE KEY")) {
        const std::size_t end = text.find("-----END", private_key.size());
        const std::size_t close = end == std::string_view::npos ? end : text.find("-----", end + 8);
        out += kMask;
        if (close == std::string_view::npos) break;
        text.remove_prefix(close + 5);
        continue;
      }
    }
    const std::size_t end = std::min(text.find_first_of(spaces), text.size());
    const std::string_view word = text.substr(0, end);
    const std::string plain = unquoted_word(word);
    if (behind_scheme && plain.size() > 5) {
      out += kMask;
      if (delimiters.find(word.back()) != std::string_view::npos) out += word.back();
    } else {
      add_word(&out, word);
    }
    // "Authorization:Bearer" is a single word, so the scheme may follow a delimiter.
    const std::size_t last = plain.find_last_of(delimiters);
    behind_scheme = is_scheme(last == std::string::npos ? plain : plain.substr(last + 1));
    text.remove_prefix(end);
  }
  return out;
}

std::string visible_text(std::string_view text, std::size_t max_bytes) {
  return visible(text, max_bytes, true);
}

std::string visible_line(std::string_view text, std::size_t max_bytes) {
  return visible(text, max_bytes, false);
}

}  // namespace bulkhead
