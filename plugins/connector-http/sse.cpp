#include "sse.hpp"

#include <algorithm>
#include <utility>

namespace connector_http {
namespace {

constexpr std::size_t id_bytes_max = 1024;
constexpr std::size_t type_bytes_max = 1024;
constexpr std::size_t kept_capacity = 64 * 1024;
constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

void shrink(std::string *s) noexcept {
  s->clear();
  if (s->capacity() > kept_capacity) std::string().swap(*s);
}

}  // namespace

// Returns the position of the first CR or LF at or after `at`. The position of the next LF is
// cached, because otherwise each line that ends with CR would require a scan of the whole piece.
std::size_t SseParser::line_end(std::string_view in, std::size_t at) noexcept {
  if (!lf_known_ || lf_ < at) {
    lf_ = std::min(in.find('\n', at), in.size());
    lf_known_ = true;
  }
  return std::min(in.substr(0, lf_).find('\r', at), lf_);
}

void SseParser::restart() noexcept {
  shrink(&line_);
  shrink(&data_);
  type_.clear();
  view_ = {};
  has_data_ = skip_lf_ = dispatched_ = false;
  has_id_ = lf_known_ = false;  // discards an incomplete event
  at_start_ = true;
}

void SseParser::reset(std::uint64_t max_event_bytes) noexcept {
  restart();
  max_event_bytes_ = max_event_bytes;
  last_id_.clear();
  retry_ms_.reset();
}

void SseParser::own_data() {
  if (view_.data() != nullptr) data_.assign(view_);
  view_ = {};
}

bool SseParser::add_data(std::string_view value, bool stable) {
  if (has_data_) {
    own_data();
    if (data_.size() + value.size() + 1 > max_event_bytes_) return false;
    data_.append(1, '\n').append(value);
    return true;
  }
  if (value.size() > max_event_bytes_) return false;
  has_data_ = true;
  if (stable) {
    view_ = value;
  } else {
    data_.assign(value);
  }
  return true;
}

void SseParser::take_id(std::string_view value) {
  const bool fit =
      value.size() <= id_bytes_max && std::all_of(value.begin(), value.end(), [](char c) {
        return static_cast<unsigned char>(c) >= 0x20 && c != 0x7F;
      });
  // The specification requires IDs that contain NUL to be ignored.
  if (value.find('\0') != std::string_view::npos) return;
  id_.assign(fit ? value : std::string_view{});
  has_id_ = true;
}

void SseParser::take_retry(std::string_view value) {
  std::uint64_t ms = 0;
  if (value.empty() || value.size() > 9) return;
  for (char c : value) {
    if (c < '0' || c > '9') return;
    ms = ms * 10 + static_cast<std::uint64_t>(c - '0');
  }
  retry_ms_ = static_cast<std::uint32_t>(ms);
}

// Processes one line without its line ending. `stable` is true if the line is in the caller's
// piece, not in line_.
bool SseParser::take_line(std::string_view line, bool stable) {
  const std::size_t colon = line.find(':');
  if (colon == 0) return true;  // a comment
  const std::string_view name = line.substr(0, colon);
  std::string_view value;
  if (colon != std::string_view::npos) value = line.substr(colon + 1);
  if (!value.empty() && value.front() == ' ') value.remove_prefix(1);
  if (name == "data") return add_data(value, stable);
  if (name == "event") type_.assign(value.substr(0, type_bytes_max));
  if (name == "id") take_id(value);
  if (name == "retry") take_retry(value);
  return true;
}

// Processes a blank line. Returns true if it completes an event.
bool SseParser::finish_event(SseEvent *out) {
  const bool have = has_data_;
  has_data_ = false;
  if (std::exchange(has_id_, false)) last_id_.swap(id_);
  if (!have) {
    type_.clear();
    return false;
  }
  out->type = type_;
  out->data = view_.data() != nullptr ? view_ : std::string_view(data_);
  dispatched_ = true;  // the next call clears type_ and data_
  return true;
}

// Stores the incomplete line at the end of a piece. Returns false if the line exceeds the limit.
bool SseParser::keep(std::string_view rest) {
  own_data();
  if (line_.size() + rest.size() > max_event_bytes_ + type_bytes_max) return false;
  line_.append(rest);
  return true;
}

SseParser::Step SseParser::next(std::string_view in, std::size_t *at, SseEvent *out) {
  if (dispatched_) {
    dispatched_ = false;
    view_ = {};
    type_.clear();
    shrink(&data_);
  }
  while (*at < in.size()) {
    if (skip_lf_) {
      skip_lf_ = false;
      if (in[*at] == '\n') {
        ++*at;
        continue;
      }
    }
    const std::size_t end = line_end(in, *at);
    std::string_view line = in.substr(*at, end - *at);
    if (end == in.size()) {
      *at = end;
      lf_known_ = false;
      return keep(line) ? Step::need_more : Step::too_large;
    }
    *at = end + 1;
    skip_lf_ = in[end] == '\r';
    const bool stable = line_.empty();
    if (!stable) {
      if (!keep(line)) return Step::too_large;
      line = line_;
    }
    if (at_start_ && line.starts_with(byte_order_mark)) line.remove_prefix(byte_order_mark.size());
    at_start_ = false;
    // The length limit is the same whether a line is within one piece or split into several.
    const bool short_enough = line.size() <= max_event_bytes_ + type_bytes_max;
    const bool fits = line.empty() || (short_enough && take_line(line, stable));
    const bool event = line.empty() && finish_event(out);
    shrink(&line_);
    if (!fits) return Step::too_large;
    if (event) return Step::event;
  }
  own_data();
  lf_known_ = false;
  return Step::need_more;
}

}  // namespace connector_http
