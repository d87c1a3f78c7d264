// Server-sent events, as the WHATWG stream format says, from bytes in any pieces.
//
// An event whose one data line lies in one piece is handed on as a view of that piece, without a
// copy; everything else is gathered, bounded by max_event_bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace connector_http {

struct SseEvent {
  std::string_view type;  // empty: "message"
  std::string_view data;  // lines joined with \n; borrowed until the handler returns
};

class SseParser {
 public:
  // What the stream of bytes turned into, step by step.
  enum class Step : std::uint8_t { event, need_more, too_large };

  explicit SseParser(std::uint64_t max_event_bytes = 1 << 20) noexcept
      : max_event_bytes_(max_event_bytes) {}

  // Starts a new stream; the last event id and the retry time stay, as the format says.
  void restart() noexcept;
  // Also forgets those. Keeps the memory of small buffers.
  void reset(std::uint64_t max_event_bytes) noexcept;

  // Looks at in from *at on. event: *out is one, call again. need_more: in is used up; what out
  // pointed to has been copied where needed. too_large: an event or line is beyond the bound.
  Step next(std::string_view in, std::size_t *at, SseEvent *out);

  // The id of the last event that came completely, to resume after; empty when the server gave
  // none. At most 1 KiB, fit for a header (longer or unfit ones count as none).
  const std::string &last_event_id() const noexcept { return last_id_; }
  // As the server asked, in milliseconds.
  std::optional<std::uint32_t> retry_ms() const noexcept { return retry_ms_; }

 private:
  std::size_t line_end(std::string_view in, std::size_t at) noexcept;
  bool take_line(std::string_view line, bool stable);
  void take_id(std::string_view value);
  void take_retry(std::string_view value);
  bool add_data(std::string_view value, bool stable);
  bool finish_event(SseEvent *out);
  bool keep(std::string_view in);
  void own_data();

  std::uint64_t max_event_bytes_;
  std::string line_;       // the start of a line whose end has not come
  std::string data_;       // gathered data lines
  std::string_view view_;  // instead of data_ while one line in the current piece is all
  std::string type_, last_id_;
  std::string id_;  // of the event being read, with has_id_
  std::optional<std::uint32_t> retry_ms_;
  std::size_t lf_ = 0;  // with lf_known_: no LF of this piece is before here
  bool lf_known_ = false;
  bool has_id_ = false;
  bool has_data_ = false;
  bool skip_lf_ = false;  // the last line ended with CR; a LF that follows belongs to it
  bool at_start_ = true;  // a byte order mark may come
  bool dispatched_ = false;
};

}  // namespace connector_http
