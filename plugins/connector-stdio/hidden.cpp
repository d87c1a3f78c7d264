#include "connector-stdio/hidden.hpp"

#include <bulkhead/cpp/text.hpp>

#include <algorithm>
#include <optional>
#include <utility>

#include "connector-stdio/shown_text.hpp"

namespace connector_stdio {
namespace {

using bh::Decoded;

constexpr std::string_view instead = "***";
// A \u escape is six bytes long and may encode a single byte of a value.
constexpr std::size_t bytes_per_byte = 6, open_at_least = 4096;
constexpr std::size_t base64_at_least = 12;  // shorter values have no distinctive base64 form

bool all_hex(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(), [](char c) { return bh::hex_value(c) >= 0; });
}

// Returns true if the text ends with a \u escape for a high surrogate.
bool ends_in_high_unit(std::string_view text) noexcept {
  if (text.size() < 6) return false;
  const std::string_view unit = text.substr(text.size() - 6);
  return unit.starts_with("\\u") && all_hex(unit.substr(2)) && (unit[2] | 0x20) == 'd' &&
         std::string_view("89abAB").find(unit[3]) != std::string_view::npos;
}

// If the text ends with an incomplete escape sequence, returns the length of that sequence. A high
// surrogate without its low surrogate is incomplete. Otherwise, returns 0.
std::size_t half_escape(std::string_view text) noexcept {
  std::size_t half = 0;
  for (std::size_t n = 1; n <= std::min<std::size_t>(text.size(), 5) && half == 0; ++n) {
    const std::string_view end = text.substr(text.size() - n);
    const bool percent = end[0] == '%' && n <= 2 && all_hex(end.substr(1));
    const bool unit = end[0] == '\\' && (n == 1 || (end[1] == 'u' && all_hex(end.substr(2))));
    if (percent || unit) half = n;
  }
  return ends_in_high_unit(text.substr(0, text.size() - half)) ? half + 6 : half;
}

std::vector<std::size_t> borders_of(std::string_view text) {
  std::vector<std::size_t> out(text.size() + 1, 0);
  std::size_t length = 0;
  for (std::size_t i = 1; i < text.size(); ++i) {
    while (length > 0 && text[i] != text[length]) length = out[length];
    if (text[i] == text[length]) ++length;
    out[i + 1] = length;
  }
  return out;
}

// Encodes the complete three-byte groups of `bytes` in base64. `last_two` are the characters for 62
// and 63, which differ between the base64 alphabets.
std::string base64(std::string_view bytes, std::string_view last_two) {
  static constexpr std::string_view letters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  std::string out;
  for (std::size_t i = 0; i + 2 < bytes.size(); i += 3) {
    const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(bytes[i + k]); };
    const unsigned group = static_cast<unsigned>(byte(0) << 16 | byte(1) << 8 | byte(2));
    for (const unsigned shift : {18u, 12u, 6u, 0u}) {
      const unsigned sextet = group >> shift & 63;
      out += sextet < letters.size() ? letters[sextet] : last_two[sextet - letters.size()];
    }
  }
  return out;
}

}  // namespace

HiddenValues::HiddenValues(std::vector<std::string> values) {
  for (std::string &value : values) {
    std::string plain = Decoded::all_of(value, max_layers), shown = ShownText::all_of(value);
    const std::size_t least = value.size() / 2;
    add_base64(value);
    add(std::move(value));
    for (std::string *form : {&plain, &shown}) {
      if (form->size() > least) add(std::move(*form));
    }
  }
}

void HiddenValues::add(std::string text) {
  if (text.empty()) return;
  const auto same = [&](const Value &value) { return value.text == text; };
  if (std::any_of(values_.begin(), values_.end(), same)) return;
  std::vector<std::size_t> borders = borders_of(text);
  max_open_ = std::max(max_open_, open_at_least + bytes_per_byte * text.size());
  values_.push_back({std::move(text), std::move(borders)});
}

// Adds the base64 forms of a value. If a value is part of a longer encoded text ("user:VALUE"), its
// form depends on its alignment to three-byte groups. One form is added for each alignment, without
// the incomplete groups at the ends. Short values are skipped, because their forms are not
// distinctive.
void HiddenValues::add_base64(std::string_view text) {
  if (text.size() < base64_at_least) return;
  for (const std::size_t skipped : {0u, 1u, 2u}) {
    for (const std::string_view last_two : {"+/", "-_"})
      add(base64(text.substr(skipped), last_two));
  }
}

// Calls f(layer, source) for the text itself, for the text as a terminal displays it (see
// ShownText), and for the text after each level of escapes has been decoded. source(range) maps a
// range of `layer` to the corresponding range of the text.
template <class F>
void HiddenValues::each_layer(std::string_view text, F f) const {
  struct Layer {
    std::optional<Decoded> decoded;  // unset if the layer is `shown`
    std::optional<ShownText> shown;
    std::string_view text() const { return decoded ? decoded->text() : shown->text(); }
    Range source(Range range) const {
      return decoded ? decoded->source(range.begin, range.end)
                     : shown->source(range.begin, range.end);
    }
  };
  std::vector<Layer> layers;
  const auto last = [&] { return layers.empty() ? text : layers.back().text(); };
  const auto call = [&] {
    f(last(), [&](Range range) {
      for (auto outer = layers.rbegin(); outer != layers.rend(); ++outer)
        range = outer->source(range);
      return range;
    });
  };
  call();
  for (unsigned decoded = 0; decoded <= max_layers; ++decoded) {
    if (auto shown = ShownText::of(last()); shown && !shown->text().empty()) {
      layers.push_back({std::nullopt, std::move(shown)});
      call();
    }
    auto inner = decoded < max_layers ? Decoded::of(last(), Decoded::Layer::both) : std::nullopt;
    if (!inner) break;
    layers.push_back({std::move(inner), std::nullopt});
    call();
  }
}

// Returns the ranges of all occurrences of values, in order. Overlapping ranges are merged.
std::vector<HiddenValues::Range> HiddenValues::find(std::string_view text) const {
  std::vector<Range> found;
  each_layer(text, [&](std::string_view layer, const auto &source) {
    for (const Value &value : values_) {
      std::size_t at = layer.find(value.text);
      const std::size_t step = value.text.size() - value.borders.back();
      for (; at != layer.npos; at = layer.find(value.text, at + step)) {
        found.push_back(source(Range{at, at + value.text.size()}));
      }
    }
  });
  std::sort(found.begin(), found.end(),
            [](const Range &a, const Range &b) { return a.begin < b.begin; });
  std::vector<Range> out;
  for (const Range &range : found) {
    if (!out.empty() && range.begin < out.back().end) {
      out.back().end = std::max(out.back().end, range.end);
    } else {
      out.push_back(range);
    }
  }
  return out;
}

// Returns the length of the longest prefix of a value with which the layer ends. An incomplete
// escape at the end of the layer is included.
std::size_t HiddenValues::beginning_in(std::string_view layer) const {
  const std::size_t half = half_escape(layer);
  const std::string_view ready = layer.substr(0, layer.size() - half);
  std::size_t longest = half;
  for (const Value &value : values_) {
    std::size_t length = 0;
    for (const char c : ready.substr(ready.size() - std::min(ready.size(), value.text.size()))) {
      if (length == value.text.size()) length = value.borders[length];
      while (length > 0 && value.text[length] != c) length = value.borders[length];
      if (value.text[length] == c) ++length;
    }
    if (length == value.text.size()) length = value.borders[length];
    longest = std::max(longest, length + (length == 0 ? 0 : half));
  }
  return longest;
}

// Returns the range at the end of the text that consists of the longest prefix of a value, in any
// layer, and an incomplete escape. Both may be empty. If the text ends with a newline, a prefix
// shorter than `broken` bytes counts only in the text itself, not in the other layers, because
// otherwise most lines would be held back.
HiddenValues::Range HiddenValues::beginning_at_end(std::string_view text,
                                                   std::size_t broken) const {
  const std::string_view whole = text.substr(0, text.size() - half_escape(text));
  const bool line_ended = whole.ends_with('\n');
  std::size_t begin = whole.size();
  bool first = true;
  each_layer(whole, [&](std::string_view layer, const auto &source) {
    const bool as_it_is = std::exchange(first, false);
    const std::size_t longest = beginning_in(layer);
    if (longest == 0 || (line_ended && !as_it_is && longest < broken)) return;
    begin = std::min(begin, source(Range{layer.size() - longest, layer.size()}).begin);
  });
  return {begin, text.size()};
}

std::size_t HiddenValues::open_end(std::string_view text) const {
  if (values_.empty()) return 0;
  std::size_t begin = beginning_at_end(text, min_masked_prefix).begin;
  const std::vector<Range> found = find(text);
  // If an occurrence extends beyond `begin`, the whole occurrence is held back.
  for (auto range = found.rbegin(); range != found.rend() && range->end > begin; ++range) {
    begin = std::min(begin, range->begin);
  }
  return text.size() - begin;
}

std::string HiddenValues::mask(std::string_view text, bool ended) const {
  std::vector<Range> found = find(text);
  if (ended && !values_.empty()) {
    Range last = beginning_at_end(text, text.npos);
    const bool beyond = found.empty() || found.back().end < last.end;
    if (last.end - last.begin >= min_masked_prefix && beyond) {
      for (; !found.empty() && found.back().end > last.begin; found.pop_back()) {
        last.begin = std::min(last.begin, found.back().begin);
      }
      found.push_back(last);
    }
  }
  std::string out;
  std::size_t from = 0;
  for (const Range &range : found) {
    out.append(text.substr(from, range.begin - from)).append(instead);
    from = range.end;
  }
  return out.append(text.substr(from));
}

std::string StreamMask::add(std::string_view piece) {
  if (hidden_.empty()) return std::string(piece);
  waiting_ += piece;
  const std::size_t open = hidden_.open_end(waiting_);
  const bool too_much = open > hidden_.max_open();
  const std::size_t ready = waiting_.size() - (too_much ? 0 : open);
  std::string out = hidden_.mask(std::string_view(waiting_).substr(0, ready), too_much);
  waiting_.erase(0, ready);
  return out;
}

std::string StreamMask::finish() {
  const std::string last = std::exchange(waiting_, {});
  return hidden_.mask(last);
}

}  // namespace connector_stdio
