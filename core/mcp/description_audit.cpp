#include "mcp/description_audit.hpp"

#include <algorithm>
#include <cstdint>

#include "bulkhead/cpp/text.hpp"
#include "mcp/scan.hpp"

namespace bulkhead::mcp {

namespace {

struct Pattern {
  std::string_view id;
  // Alternative phrases, separated by '|'. A phrase that begins with a letter matches only at the
  // start of a word.
  std::string_view texts;
};

constexpr Pattern kPatterns[] = {
    {"you-are-now", "you are now"},
    {"ignore-previous",
     "ignore previous|ignore all previous|ignore any previous|ignore the previous|"
     "ignore all the previous|ignore all of the previous"},
    {"ignore-instructions",
     "ignore instructions|ignore all instructions|ignore any instructions|"
     "ignore the instructions|ignore your instructions|ignore all other instructions"},
    {"system-prefix", "system:|system :"},
    {"role-system", "role: system|role:system|role : system|\"role\": \"system|\"role\":\"system"},
    {"override-instructions",
     "override any instructions|override all instructions|override any previous instructions|"
     "override all previous instructions|override your instructions"},
    {"act-as-if", "act as if you|act as though you"},
    {"pretend", "pretend you|pretend to be"},
    {"new-instructions", "new instruction:|new instructions:"},
    {"forget", "forget everything|forget all|forget your"},
    {"system-tag", "<system>|</system>"},
    {"inst-open", "[inst]"},
    {"inst-close", "[/inst]"},
    {"sys-tag", "<<sys>>|<</sys>>"},
};
constexpr std::string_view kLong = "long";
constexpr std::string_view kHidden = "hidden-characters";
constexpr unsigned kDepth = 128;  // same limit as valid_json()

bool word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

bool holds(std::string_view text, std::string_view part) {
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string_view::npos; ++at)
    if (!word_character(part[0]) || at == 0 || !word_character(text[at - 1])) return true;
  return false;
}

bool holds_any(std::string_view text, std::string_view parts) {
  while (!parts.empty()) {
    const std::size_t bar = parts.find('|');
    if (holds(text, parts.substr(0, bar))) return true;
    parts.remove_prefix(bar == std::string_view::npos ? parts.size() : bar + 1);
  }
  return false;
}

bool blank(char32_t c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == 0xA0 || c == 0x3000 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x202F;
}

class Audit {
 public:
  void text(std::string_view text, bool may_be_long) {
    plain_.clear();
    std::size_t characters = 0;
    for (; !text.empty(); ++characters) {
      std::size_t size = 0;
      const char32_t c = bh::first_character(text, &size);
      append(c, text.substr(0, size));
      text.remove_prefix(size);
    }
    long_ = long_ || (may_be_long && characters > kLongDescription);
    for (std::size_t i = 0; i < std::size(kPatterns); ++i)
      if (holds_any(plain_, kPatterns[i].texts)) found_ |= std::uint32_t{1} << i;
  }

  // Visits every string in a JSON value. `depth` is the maximum nesting depth.
  void value(std::string_view json, unsigned depth) {
    if (json.empty() || depth == 0) return;
    Inside inside{this, depth - 1};
    if (json.front() == '"') {
      std::string scratch;
      text(unquote(json, &scratch), false);
    } else if (json.front() == '[') {
      for_each_item(json, &inside, [](void *arg, std::string_view item) {
        const auto *self = static_cast<Inside *>(arg);
        self->audit->value(item, self->depth);
        return true;
      });
    } else if (json.front() == '{') {
      for_each_member(json, &inside, [](void *arg, std::string_view key, std::string_view member) {
        const auto *self = static_cast<Inside *>(arg);
        self->audit->value(key, 1);
        self->audit->value(member, self->depth);
        return true;
      });
    }
  }

  std::vector<std::string_view> result() const {
    std::vector<std::string_view> out;
    for (std::size_t i = 0; i < std::size(kPatterns); ++i)
      if ((found_ >> i & 1u) != 0) out.push_back(kPatterns[i].id);
    if (long_) out.push_back(kLong);
    if (hidden_) out.push_back(kHidden);
    return out;
  }

 private:
  struct Inside {
    Audit *audit;
    unsigned depth;
  };

  // Appends a character to the text that is searched for patterns. In this text, letters are
  // lowercase and each run of white space is a single space.
  void append(char32_t c, std::string_view bytes) {
    if (blank(c)) {
      if (!plain_.ends_with(' ')) plain_ += ' ';
    } else if (hidden_character(c)) {
      hidden_ = true;
    } else if (c < 0x80) {
      plain_ += bh::lower(static_cast<char>(c));
    } else {
      plain_ += bytes;
    }
  }

  std::string plain_;
  std::uint32_t found_ = 0;
  bool long_ = false, hidden_ = false;
};

}  // namespace

bool hidden_character(char32_t c) noexcept {
  const auto in = [c](char32_t first, char32_t last) { return c >= first && c <= last; };
  return c < 0x20 || in(0x7F, 0x9F) || c == 0xAD || c == 0x34F || c == 0x61C ||
         in(0x115F, 0x1160) || in(0x17B4, 0x17B5) || in(0x180B, 0x180F) || in(0x200B, 0x200F) ||
         in(0x2028, 0x202E) || in(0x2060, 0x206F) || c == 0x3164 || in(0xFE00, 0xFE0F) ||
         c == 0xFEFF || c == 0xFFA0 || in(0xFFF0, 0xFFFB) || in(0x1BCA0, 0x1BCA3) ||
         in(0x1D173, 0x1D17A) || in(0xE0000, 0xE0FFF);
}

std::vector<std::string_view> audit_text(std::string_view text) {
  Audit audit;
  audit.text(text, true);
  return audit.result();
}

std::vector<std::string_view> audit_tool(std::string_view tool_json) {
  Audit audit;
  audit.value(tool_json, kDepth);
  const std::string_view description = member(tool_json, "description");
  std::string scratch;
  if (description.starts_with('"')) audit.text(unquote(description, &scratch), true);
  return audit.result();
}

}  // namespace bulkhead::mcp
